//! Which document is which, and what each says.

use std::collections::BTreeMap;

use driftline_core::Value;

use super::yaml;
use crate::normalize::{NormalizeError, Opened, text};

/// All that the documents of one pass say.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The template, and the document that it is in.
    pub template: Option<(String, BTreeMap<String, Value>)>,
    pub stack: Stack,
    /// What was given for parameters.
    pub parameters: BTreeMap<String, Given>,
    /// Whether a stack says what its parameters are: then it says all of them.
    pub deployed: bool,
    /// The physical id of each resource that has one, and its type if that is told, by its logical id.
    physical: BTreeMap<String, (String, Option<String>)>,
    /// Whether a document lists the resources of the stack.
    pub listed: bool,
    pub exports: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub(super) struct Stack {
    pub name: Option<String>,
    pub id: Option<String>,
    pub notifications: Option<Value>,
}

/// What was given for one parameter.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub value: Value,
    /// What a parameter of the Parameter Store came to.
    pub resolved: Option<Value>,
    /// Whether the stack says so, and not a file.
    deployed: bool,
}

impl Pass {
    pub(super) fn take(&mut self, document: &Opened<'_>) -> Result<(), NormalizeError> {
        let refuse = |message: String| NormalizeError::new(&document.name, message);
        let value = read(document.text).map_err(refuse)?;
        let mut members = match value {
            Value::Array(items) => {
                return self.take_parameters(&items, false).map_err(|why| refuse(why.to_owned()).hint(KNOWN));
            }
            Value::Object(members) => members,
            _ => return Err(refuse(UNRECOGNISED.to_owned())),
        };
        if members.contains_key("Resources") {
            return self.take_template(document, Value::Object(members));
        }
        if let Some(body) = members.remove("TemplateBody") {
            let template = match body {
                Value::String(text) => read(&text).map_err(|why| refuse(format!("its TemplateBody: {why}")))?,
                body => body,
            };
            return self.take_template(document, template);
        }
        let list = |name: &str| match members.get(name) {
            Some(Value::Array(items)) => Some(items),
            _ => None,
        };
        if let Some(stacks) = list("Stacks") {
            let [stack] = stacks.as_slice() else {
                return Err(refuse(format!("it describes {} stacks", stacks.len()))
                    .hint("ask for one: aws cloudformation describe-stacks --stack-name NAME"));
            };
            return self.take_stack(document, stack);
        }
        if let Some(resources) = list("StackResources").or_else(|| list("StackResourceSummaries")) {
            self.listed = true;
            return resources.iter().try_for_each(|resource| self.take_resource(document, resource));
        }
        if let Some(exports) = list("Exports") {
            for export in exports {
                if let (Some(name), Some(Value::String(value))) = (text(export, "Name"), export.get("Value")) {
                    self.exports.insert(name.to_owned(), value.clone());
                }
            }
            return Ok(());
        }
        match members.get("Parameters") {
            Some(Value::Array(items)) => self.take_parameters(items, false).map_err(|why| refuse(why.to_owned()))?,
            Some(Value::Object(given)) => {
                for (name, value) in given {
                    self.give(name, Given { value: value.clone(), resolved: None, deployed: false });
                }
            }
            _ => return Err(refuse(UNRECOGNISED.to_owned()).hint(KNOWN)),
        }
        if let Some(Value::Object(tags)) = members.get("Tags") {
            self.tags.extend(tags.iter().filter_map(|(name, tag)| Some((name.clone(), tag.as_str()?.to_owned()))));
        }
        Ok(())
    }

    fn take_template(&mut self, document: &Opened<'_>, template: Value) -> Result<(), NormalizeError> {
        let Value::Object(members) = template else {
            return Err(NormalizeError::new(&document.name, "its template is not an object"));
        };
        if !matches!(members.get("Resources"), Some(Value::Object(_))) {
            return Err(NormalizeError::new(&document.name, "its template has no object `Resources`"));
        }
        if let Some((other, _)) = &self.template {
            return Err(NormalizeError::new(&document.name, format!("it is a template, and so is {other}"))
                .hint("observe each stack as a source of its own (--name)"));
        }
        self.template = Some((document.name.clone(), members));
        Ok(())
    }

    fn take_stack(&mut self, document: &Opened<'_>, stack: &Value) -> Result<(), NormalizeError> {
        self.is_of(document, text(stack, "StackName"), text(stack, "StackId"))?;
        self.stack.notifications = stack.get("NotificationARNs").filter(|them| them.as_array().is_some()).cloned();
        if let Some(Value::Array(parameters)) = stack.get("Parameters")
            && !parameters.is_empty()
        {
            self.deployed = true;
            self.take_parameters(parameters, true).map_err(|why| NormalizeError::new(&document.name, why))?;
        }
        for tag in stack.get("Tags").and_then(Value::as_array).into_iter().flatten() {
            if let (Some(key), Some(Value::String(value))) = (text(tag, "Key"), tag.get("Value")) {
                self.tags.insert(key.to_owned(), value.clone());
            }
        }
        Ok(())
    }

    fn take_resource(&mut self, document: &Opened<'_>, resource: &Value) -> Result<(), NormalizeError> {
        self.is_of(document, text(resource, "StackName"), text(resource, "StackId"))?;
        let gone = matches!(text(resource, "ResourceStatus"), Some("DELETE_COMPLETE" | "DELETE_SKIPPED"));
        let names = (text(resource, "LogicalResourceId"), text(resource, "PhysicalResourceId"));
        if let (Some(logical), Some(physical)) = names
            && !gone
        {
            let kind = text(resource, "ResourceType").map(ToOwned::to_owned);
            self.physical.insert(logical.to_owned(), (physical.to_owned(), kind));
        }
        Ok(())
    }

    /// The physical id of a resource. What was of another type when it was made is not this one.
    pub(super) fn physical(&self, logical: &str, kind: &str) -> Option<&str> {
        let (id, known) = self.physical.get(logical)?;
        known.as_deref().is_none_or(|known| known == kind).then_some(id)
    }

    /// All documents of a pass are of one stack.
    fn is_of(&mut self, document: &Opened<'_>, name: Option<&str>, id: Option<&str>) -> Result<(), NormalizeError> {
        for (known, said) in [(&mut self.stack.name, name), (&mut self.stack.id, id)] {
            match (known.as_deref(), said) {
                (Some(known), Some(said)) if known != said => {
                    let message = "it is of another stack than the documents before it";
                    return Err(NormalizeError::new(&document.name, message)
                        .hint("observe each stack as a source of its own (--name)"));
                }
                (None, Some(said)) => *known = Some(said.to_owned()),
                _ => {}
            }
        }
        Ok(())
    }

    fn take_parameters(&mut self, items: &[Value], deployed: bool) -> Result<(), &'static str> {
        for item in items {
            let Some(name) = text(item, "ParameterKey") else { return Err(UNRECOGNISED) };
            // `UsePreviousValue` says that there is a value, and not which.
            let value = item.get("ParameterValue").cloned().unwrap_or(Value::Null);
            let given = Given { value, resolved: item.get("ResolvedValue").cloned(), deployed };
            self.give(name, given);
        }
        Ok(())
    }

    /// What the stack was deployed with goes before what a file says, whichever comes first.
    fn give(&mut self, name: &str, given: Given) {
        if given.deployed || self.parameters.get(name).is_none_or(|known| !known.deployed) {
            self.parameters.insert(name.to_owned(), given);
        }
    }
}

const UNRECOGNISED: &str = "it is neither a template nor a description of a stack, of its resources or parameters";
const KNOWN: &str = "a template has `Resources`; aws cloudformation describe-stacks, describe-stack-resources, \
                     list-exports and get-template print the rest";

/// JSON, or YAML.
fn read(text: &str) -> Result<Value, String> {
    match text.trim_ascii_start().starts_with(['{', '[']) {
        true => serde_json::from_str(text).or_else(|error| {
            // YAML may be written like that, too.
            yaml::read(text).map_err(|_| NormalizeError::json("", &error).message)
        }),
        false => yaml::read(text),
    }
}
