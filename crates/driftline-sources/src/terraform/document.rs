//! The forms that Terraform's resources come in, told apart by their members.

use std::collections::BTreeMap;

use driftline_core::Value;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::address;
use crate::normalize::{NormalizeError, Opened, read};

/// One document, by its form.
#[derive(Debug)]
pub(super) enum Form<'a> {
    /// A state file, or what `terraform show -json` printed of one.
    State(Vec<Item<'a>>),
    Plan(Plan<'a>),
    /// swamp's `tf_resource`; `None` is a data source.
    Resource(Option<Item<'a>>),
    /// swamp's `tf_inventory`: the addresses that its run found.
    Inventory(Vec<String>),
    /// swamp's `tf_output`: no resource.
    Output,
}

/// One object that Terraform manages, not read further than needed to name it.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub address: String,
    pub kind: String,
    /// As it is written, with the alias: objects of one provider are in one account and mostly in one region.
    pub provider: String,
    pub deposed: Option<String>,
    pub tainted: bool,
    pub attributes: Option<&'a RawValue>,
    /// The attributes are one text for each leaf, as Terraform 0.11 had them.
    pub flat: bool,
    pub marks: Marks<'a>,
}

/// How a document says which values are sensitive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Marks<'a> {
    /// A list of paths.
    Listed(&'a RawValue),
    /// The shape of the values, with `true` where one is sensitive.
    Mirrored(&'a RawValue),
    Unmarked,
}

#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// What is managed, as it was read just before planning.
    pub prior: Option<Vec<Item<'a>>>,
    pub drift: Vec<Entry<'a>>,
    pub changes: Vec<Entry<'a>>,
    pub timestamp: Option<String>,
    /// Why the plan does not tell everything, if it does not.
    pub partial: Option<&'static str>,
}

/// What a plan says of one object.
#[derive(Debug, Deserialize)]
pub(super) struct Entry<'a> {
    pub address: String,
    mode: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub provider_name: String,
    pub deposed: Option<String>,
    #[serde(borrow)]
    pub change: Change<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Change<'a> {
    pub actions: Vec<String>,
    #[serde(borrow)]
    pub before: Option<&'a RawValue>,
    #[serde(borrow)]
    pub after: Option<&'a RawValue>,
    #[serde(borrow)]
    pub after_unknown: Option<&'a RawValue>,
    #[serde(borrow)]
    pub before_sensitive: Option<&'a RawValue>,
    #[serde(borrow)]
    pub after_sensitive: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StateFile<'a> {
    #[serde(borrow)]
    resources: Option<Vec<StateResource<'a>>>,
}

#[derive(Deserialize)]
struct StateResource<'a> {
    module: Option<String>,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    provider: String,
    #[serde(borrow)]
    instances: Option<Vec<Instance<'a>>>,
}

#[derive(Deserialize)]
struct Instance<'a> {
    index_key: Option<Value>,
    status: Option<String>,
    deposed: Option<String>,
    #[serde(borrow)]
    attributes: Option<&'a RawValue>,
    #[serde(borrow)]
    attributes_flat: Option<&'a RawValue>,
    #[serde(borrow)]
    sensitive_attributes: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ShownState<'a> {
    #[serde(borrow)]
    values: Option<ShownValues<'a>>,
}

#[derive(Deserialize)]
struct ShownValues<'a> {
    #[serde(borrow)]
    root_module: Option<ShownModule<'a>>,
}

/// Modules nest no deeper than the parser lets them.
#[derive(Deserialize)]
struct ShownModule<'a> {
    #[serde(borrow)]
    resources: Option<Vec<ShownResource<'a>>>,
    #[serde(borrow)]
    child_modules: Option<Vec<ShownModule<'a>>>,
}

#[derive(Deserialize)]
struct ShownResource<'a> {
    address: String,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    /// swamp writes the same thing with its own spelling.
    #[serde(default, alias = "providerName")]
    provider_name: String,
    deposed_key: Option<String>,
    #[serde(default)]
    tainted: bool,
    #[serde(borrow)]
    values: Option<&'a RawValue>,
    #[serde(borrow)]
    sensitive_values: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ShownPlan<'a> {
    #[serde(borrow)]
    prior_state: Option<ShownState<'a>>,
    #[serde(borrow)]
    resource_drift: Option<Vec<Entry<'a>>>,
    #[serde(borrow)]
    resource_changes: Option<Vec<Entry<'a>>>,
    timestamp: Option<String>,
    errored: Option<bool>,
    complete: Option<bool>,
}

#[derive(Deserialize)]
struct Inventory {
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    address: String,
}

const ACCEPTED: &str = "accepted are a `terraform.tfstate` of version 4, what `terraform show -json` prints of a state \
     or a plan, and swamp's `tf_resource` and `tf_inventory`";

/// Tells what a document is, and reads it as far as its items.
pub(super) fn recognise<'a>(document: &Opened<'a>) -> Result<Form<'a>, NormalizeError> {
    let error = |message: String| NormalizeError::new(&document.name, message);
    if !document.text.trim_ascii_start().starts_with('{') {
        return Err(error("it is not a JSON object".to_owned()).hint(ACCEPTED));
    }
    let members: BTreeMap<String, &RawValue> = read(document)?;
    let has = |name: &str| members.contains_key(name);
    if let Some(version) = members.get("format_version") {
        check_format(document, version)?;
        if ["planned_values", "resource_changes", "prior_state"].into_iter().any(has) {
            return read(document).map(|plan| Form::Plan(plan_of(plan)));
        }
        // Of an empty state nothing but versions is printed.
        let is_state = |name: &String| matches!(name.as_str(), "format_version" | "terraform_version" | "checks");
        if has("values") || members.keys().all(is_state) {
            return read::<ShownState<'_>>(document).map(|state| Form::State(shown_items(state)));
        }
    } else if has("version") && ["resources", "serial", "lineage", "modules"].into_iter().any(has) {
        check_version(document, members["version"])?;
        if !has("resources") {
            return Err(error("it is a state of version 4 without `resources`".to_owned()));
        }
        return state_items(document, read(document)?).map(Form::State);
    } else if ["address", "mode", "type", "values"].into_iter().all(has) {
        return read::<ShownResource<'_>>(document).map(|resource| Form::Resource(shown_item(resource)));
    } else if has("terraformVersion") && has("resources") {
        let inventory: Inventory = read(document)?;
        return Ok(Form::Inventory(inventory.resources.into_iter().map(|listed| listed.address).collect()));
    } else if has("value") && has("sensitive") {
        return Ok(Form::Output);
    } else if has("encrypted_data") {
        return Err(error("it is an encrypted state".to_owned()).hint("give what `tofu show -json` prints of it"));
    }
    let names: Vec<String> = members.keys().take(6).map(|name| format!("`{}`", name.escape_debug())).collect();
    let names = match names.is_empty() {
        true => "no members".to_owned(),
        false => format!("members such as {}", names.join(", ")),
    };
    Err(error(format!("it is a JSON object with {names}, and nothing that Terraform or swamp writes")).hint(ACCEPTED))
}

fn check_format(document: &Opened<'_>, version: &RawValue) -> Result<(), NormalizeError> {
    let text: String = serde_json::from_str(version.get())
        .map_err(|_| NormalizeError::new(&document.name, "its `format_version` is not a text"))?;
    match text.split('.').next() {
        Some("0" | "1") => Ok(()),
        _ => {
            let shown = text.escape_debug();
            Err(NormalizeError::new(&document.name, format!("its format version is `{shown}`; 0 and 1 are known")))
        }
    }
}

fn check_version(document: &Opened<'_>, version: &RawValue) -> Result<(), NormalizeError> {
    match serde_json::from_str::<u64>(version.get()) {
        Ok(4) => Ok(()),
        Ok(version @ 0..=3) => {
            let message = format!("it is a state of version {version}; version 4 is read");
            Err(NormalizeError::new(&document.name, message)
                .hint("`terraform state pull` of Terraform 0.12 or newer writes version 4"))
        }
        Ok(version) => {
            let message = format!("it is a state of version {version}, newer than version 4");
            Err(NormalizeError::new(&document.name, message)
                .hint("give what `terraform show -json` prints, or a newer Driftline"))
        }
        Err(_) => Err(NormalizeError::new(&document.name, "its `version` is not a whole number")),
    }
}

fn state_items<'a>(document: &Opened<'a>, state: StateFile<'a>) -> Result<Vec<Item<'a>>, NormalizeError> {
    let mut items = Vec::new();
    for resource in state.resources.unwrap_or_default() {
        if resource.mode != MANAGED {
            continue;
        }
        for instance in resource.instances.unwrap_or_default() {
            let module = resource.module.as_deref();
            let index = instance.index_key.as_ref();
            let address = address::address(module, &resource.kind, &resource.name, index).ok_or_else(|| {
                let message = format!("an index of `{}.{}` is neither number nor text", resource.kind, resource.name);
                NormalizeError::new(&document.name, message)
            })?;
            items.push(Item {
                address,
                kind: resource.kind.clone(),
                provider: resource.provider.clone(),
                deposed: instance.deposed.filter(|key| !key.is_empty()),
                tainted: instance.status.as_deref() == Some("tainted"),
                flat: instance.attributes.is_none() && instance.attributes_flat.is_some(),
                attributes: instance.attributes.or(instance.attributes_flat),
                marks: instance.sensitive_attributes.map_or(Marks::Unmarked, Marks::Listed),
            });
        }
    }
    Ok(items)
}

const MANAGED: &str = "managed";

fn shown_items(state: ShownState<'_>) -> Vec<Item<'_>> {
    fn walk<'a>(module: ShownModule<'a>, items: &mut Vec<Item<'a>>) {
        items.extend(module.resources.into_iter().flatten().filter_map(shown_item));
        for child in module.child_modules.unwrap_or_default() {
            walk(child, items);
        }
    }
    let mut items = Vec::new();
    if let Some(root) = state.values.and_then(|values| values.root_module) {
        walk(root, &mut items);
    }
    items
}

fn shown_item(resource: ShownResource<'_>) -> Option<Item<'_>> {
    (resource.mode == MANAGED).then(|| Item {
        address: resource.address,
        kind: resource.kind,
        provider: resource.provider_name,
        deposed: resource.deposed_key.filter(|key| !key.is_empty()),
        tainted: resource.tainted,
        attributes: resource.values,
        flat: false,
        marks: resource.sensitive_values.map_or(Marks::Unmarked, Marks::Mirrored),
    })
}

fn managed(entries: Option<Vec<Entry<'_>>>) -> Vec<Entry<'_>> {
    entries.into_iter().flatten().filter(|entry| entry.mode == MANAGED).collect()
}

fn plan_of(plan: ShownPlan<'_>) -> Plan<'_> {
    let mut changes = managed(plan.resource_changes);
    changes.retain(|entry| !matches!(entry.change.actions.as_slice(), [one] if one == "no-op" || one == "read"));
    Plan {
        prior: plan.prior_state.map(shown_items),
        drift: managed(plan.resource_drift),
        changes,
        timestamp: plan.timestamp,
        partial: match (plan.errored, plan.complete) {
            (Some(true), _) => Some("the plan ended in an error"),
            (_, Some(false)) => Some("the plan is not complete: it was told to leave things out, or put them off"),
            _ => None,
        },
    }
}
