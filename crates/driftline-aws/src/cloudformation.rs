//! cloudformation: the stacks of a region, and of each what it declares and what it made.

use driftline_core::coverage::EVERY;
use driftline_core::{Coverage, Extent, Outcome, Problem, SourceName, Value as Canonical};
use driftline_sources::aws::resource_key;
use driftline_sources::normalize::{Document, Found, Listing, Model, NormalizeError};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::pass::{BASIS, Covered, Here, Pass, add_problems, recover};
use crate::row::{Given, Operation, Paging, Wire};
use crate::run::{Listed, ask, pages, reason};
use crate::shape::{at, boolean, camel, tags, text_at};

const WIRE: Wire = Wire::Query { version: "2010-05-15" };
const LISTS: &[&str] = &[
    "Stacks",
    "Parameters",
    "Outputs",
    "Tags",
    "NotificationARNs",
    "Capabilities",
    "StackResourceSummaries",
    "Exports",
];

const fn operation(name: &'static str, given: &'static [(&'static str, Given)]) -> Operation {
    Operation { service: "cloudformation", name, wire: WIRE, given, action: None, lists: LISTS }
}

const STACKS: Operation = operation("DescribeStacks", &[]);
const RESOURCES: Operation = operation("ListStackResources", &[]);
/// As transforms and macros left it, for that is what the stack was made of.
const TEMPLATE: Operation = operation("GetTemplate", &[("TemplateStage", Given::Text("Processed"))]);
const EXPORTS: Operation = operation("ListExports", &[]);

pub(crate) const OPERATIONS: &[Operation] = &[STACKS, RESOURCES, TEMPLATE, EXPORTS];

const PAGES: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };
const STACK: &str = "AWS::CloudFormation::Stack";
const SIDE_BY_SIDE: usize = 8;

/// The stacks themselves are one stream; what each of them declares is one of its own.
pub(crate) async fn observe(here: &Here, source: &SourceName) -> Result<Vec<Pass>, NormalizeError> {
    let client = &here.client;
    let (stacks, exports) = futures_util::future::join(
        pages(client, &STACKS, Some(&PAGES), "Stacks/*", &[], ""),
        pages(client, &EXPORTS, Some(&PAGES), "Exports/*", &[], ""),
    )
    .await;
    let (exports, unlisted) = (&exports.items, exports.partial);
    let there = |stack: &&Value| text_at(stack, "StackStatus") != Some("DELETE_COMPLETE");
    let declared = stream::iter(stacks.items.iter().filter(there).map(|stack| async move {
        let name = text_at(stack, "StackName").unwrap_or_default();
        (name, stack_pass(here, source, stack, exports).await)
    }));
    let declared: Vec<_> = declared.buffered(SIDE_BY_SIDE).collect().await;
    let mut listing = Listing::default();
    listing.taken_at = Some(here.taken_at);
    for stack in stacks.items.iter().filter(there) {
        let id = text_at(stack, "StackId").unwrap_or_default();
        let key = resource_key(STACK, id, here.whereabouts());
        let properties: Canonical = serde_json::from_value(described(stack)).expect("JSON is JSON");
        let sensitive = vec!["/parameters/*".parse().expect("a pattern")];
        listing.items += 1;
        listing.resources.insert(key, Found::new(&properties, sensitive));
    }
    let mut covered = Covered::default();
    covered.add(STACK, here.place(STACK), stacks.outcome());
    recover(&mut listing, &covered, BASIS);
    add_problems(&mut listing, stacks.problems.clone());
    if let Some(reason) = &unlisted {
        let message = format!("{reason}; what stacks import from others is not resolved");
        add_problems(&mut listing, vec![Problem { about: "exports".into(), message }]);
    }
    let mut passes = Vec::new();
    for (name, pass) in declared {
        // One stack that cannot be read is no reason to lose the others, and none to call what it declares gone.
        passes.push(pass.unwrap_or_else(|reason| {
            let message = format!("not observed: {reason}");
            add_problems(&mut listing, vec![Problem { about: name.to_owned(), message }]);
            let mut unread = Coverage::new();
            let everything = Extent { kind: EVERY.into(), place: EVERY.into() };
            unread.record(everything, Outcome::Partial { reason });
            let mut listing = Listing::of_nothing(unread);
            listing.taken_at = Some(here.taken_at);
            Pass { part: Some(part(name)), scope: here.scope(), listing }
        }));
    }
    passes.insert(0, Pass { part: None, scope: here.scope(), listing });
    Ok(passes)
}

async fn stack_pass(here: &Here, source: &SourceName, stack: &Value, exports: &[Value]) -> Result<Pass, String> {
    let client = &here.client;
    // By its id: a name may be of a stack that was deleted, too.
    let id = text_at(stack, "StackId").or_else(|| text_at(stack, "StackName")).unwrap_or_default();
    let more = [("StackName".to_owned(), Value::from(id))];
    let template = ask(client, &TEMPLATE, &more, "").await.map_err(|error| reason(&error, &TEMPLATE))?;
    let resources: Listed = pages(client, &RESOURCES, Some(&PAGES), "StackResourceSummaries/*", &more, "").await;
    let part = part(text_at(stack, "StackName").unwrap_or_default());
    let source: SourceName =
        format!("{source}/{part}").parse().map_err(|error: driftline_core::NameError| error.to_string())?;
    let documents = [
        json!({"TemplateBody": template.get("TemplateBody")}),
        json!({"Stacks": [stack]}),
        json!({"StackResourceSummaries": resources.items}),
        json!({"Exports": exports}),
    ];
    let texts = documents.map(|document| document.to_string());
    let name = format!("the stack {part}");
    let documents = texts.each_ref().map(|text| Document { name: &name, bytes: text.as_bytes(), written_at: None });
    let listings = Model::CloudFormation.normalize(&documents, &here.context(&source));
    let mut listing = listings.map_err(|error| error.to_string())?.into_iter().next().unwrap_or_default();
    listing.taken_at = Some(here.taken_at);
    if let Some(reason) = &resources.partial {
        listing.cut_short(&name, reason);
    }
    Ok(Pass { part: Some(part), scope: here.scope(), listing })
}

/// Names of sources have no capitals.
fn part(stack: &str) -> String {
    stack.to_lowercase()
}

fn described(stack: &Value) -> Value {
    let pairs = |list: &str, name: &str, value: &str| {
        let items = stack.get(list).and_then(Value::as_array).into_iter().flatten();
        let pairs = items.filter_map(|item| Some((text_at(item, name)?.to_owned(), item.get(value)?.clone())));
        Value::Object(pairs.collect())
    };
    json!({
        "stackName": text_at(stack, "StackName"),
        "description": text_at(stack, "Description"),
        "parentId": text_at(stack, "ParentId"),
        "roleArn": text_at(stack, "RoleARN"),
        "enableTerminationProtection": at(stack, "EnableTerminationProtection").map(boolean),
        "parameters": pairs("Parameters", "ParameterKey", "ParameterValue"),
        "outputs": pairs("Outputs", "OutputKey", "OutputValue"),
        "capabilities": at(stack, "Capabilities").map(camel),
        "tags": tags(at(stack, "Tags")),
        "failed": text_at(stack, "StackStatus").filter(|status| status.contains("FAILED")),
    })
}
