//! Any resource type through AWS Cloud Control: requests that AWS works on, and a token to ask after each.

use aws_wire::{Call, Client};
use driftline_core::{Change, Value};
use kube::ResourceExt as _;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

use crate::aws::cloud_error;
use crate::cloud::{Cloud, CloudError, CloudResult, Dismantled, Fault, Progress, Thing, Written};
use crate::crd::{AwsResource, Pending};
use crate::decision::Live;
use crate::look::INTENT;
use crate::settings::ADOPT;

/// Cloud Control of one account.
#[derive(Clone, Debug)]
pub struct CloudControl {
    client: Client,
}

/// A request as Cloud Control tells of it.
struct Event {
    operation: String,
    status: String,
    token: String,
    identifier: Option<String>,
    code: Option<String>,
    message: String,
}

impl CloudControl {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn ask(&self, object: &AwsResource, operation: &str, body: Json) -> Result<Json, aws_wire::Error> {
        let client = match &object.spec.region {
            Some(region) => self.client.in_region(region),
            None => self.client.clone(),
        };
        let call = Call::json("cloudcontrolapi", "CloudApiService", "1.0", operation, body);
        client.call(&call).await?.json()
    }

    async fn get(&self, object: &AwsResource, id: &str) -> CloudResult<Option<Thing>> {
        let body = json!({"TypeName": object.spec.type_name, "Identifier": id});
        let answer = match self.ask(object, "GetResource", body).await {
            Ok(answer) => answer,
            Err(error) if error.code.as_deref() == Some("ResourceNotFoundException") => return Ok(None),
            Err(error) if error.kind == aws_wire::Kind::NotFound && error.code.is_none() => {
                return Err(CloudError::new(Fault::Unavailable, error));
            }
            Err(error) => return Err(cloud_error(error)),
        };
        let description = &answer["ResourceDescription"];
        let text = description["Properties"].as_str().ok_or_else(|| malformed("it has no Properties"))?;
        let document: Value = serde_json::from_str(text).map_err(|error| malformed(&error.to_string()))?;
        let arn = document.get("Arn").and_then(Value::as_str).filter(|arn| arn.starts_with("arn:"));
        Ok(Some(Thing {
            id: description["Identifier"].as_str().unwrap_or(id).to_owned(),
            arn: arn.map(ToOwned::to_owned),
            etag: None,
            live: Live::Present,
            state: None,
            owner: None,
            document,
        }))
    }

    async fn request(&self, object: &AwsResource, operation: &str, body: Json) -> CloudResult<Event> {
        let answer = self.ask(object, operation, body).await.map_err(cloud_error)?;
        event(&answer)
    }

    async fn issue_create(&self, object: &AwsResource, token: &str, document: &Value) -> CloudResult<Event> {
        let body = json!({
            "TypeName": object.spec.type_name,
            "ClientToken": token,
            "DesiredState": document.to_json(),
        });
        self.request(object, "CreateResource", body).await
    }
}

fn malformed(why: &str) -> CloudError {
    CloudError::new(Fault::Unavailable, format!("cloudcontrolapi: the answer cannot be read: {why}"))
}

fn event(answer: &Json) -> CloudResult<Event> {
    let event = &answer["ProgressEvent"];
    let text = |name: &str| event[name].as_str().map(ToOwned::to_owned);
    Ok(Event {
        operation: text("Operation").unwrap_or_default(),
        status: text("OperationStatus").ok_or_else(|| malformed("it has no OperationStatus"))?,
        token: text("RequestToken").ok_or_else(|| malformed("it has no RequestToken"))?,
        identifier: text("Identifier"),
        code: text("ErrorCode"),
        message: text("StatusMessage").unwrap_or_default(),
    })
}

/// What a request has come to.
fn progress(event: &Event) -> Progress {
    match event.status.as_str() {
        "SUCCESS" => Progress::Done(event.identifier.clone()),
        "FAILED" | "CANCEL_COMPLETE" => {
            let code = event.code.as_deref().unwrap_or(&event.status);
            let fault = match code {
                "Throttling" => Fault::Throttled,
                "AccessDenied" | "UnauthorizedTaggingOperation" => Fault::AccessDenied,
                "InvalidCredentials" => Fault::Credentials,
                "AlreadyExists" | "ResourceConflict" => Fault::Conflict,
                "NotFound" => Fault::NotFound,
                "ServiceInternalError" | "ServiceTimeout" | "NetworkFailure" | "InternalFailure" => Fault::Unavailable,
                _ => Fault::Invalid,
            };
            let reason = (code == "AlreadyExists").then_some("AlreadyExists");
            let message = format!("cloudcontrolapi: {code}: {}", event.message);
            Progress::Failed(CloudError { reason, ..CloudError::new(fault, message) })
        }
        _ => {
            let operation = if event.operation.is_empty() { "UPDATE" } else { &event.operation };
            Progress::Working(Some(Pending { operation: operation.to_owned(), token: event.token.clone() }))
        }
    }
}

impl Cloud<AwsResource> for CloudControl {
    /// Names mean nothing here; only what the object says to take over is looked for.
    async fn find(&self, object: &AwsResource) -> CloudResult<Option<Thing>> {
        match object.annotations().get(ADOPT) {
            Some(id) if object.status.as_ref().is_none_or(|status| status.id.is_none()) => self.get(object, id).await,
            _ => Ok(None),
        }
    }

    async fn read(&self, object: &AwsResource, id: &str) -> CloudResult<Option<Thing>> {
        self.get(object, id).await
    }

    /// AWS answers a second request with the same token with the first: it is remembered before it is used.
    fn intent(&self, object: &AwsResource, nonce: &str) -> Option<Pending> {
        let token = format!("{INTENT}{}-{nonce}", object.uid().unwrap_or_default());
        Some(Pending { operation: "CREATE".into(), token })
    }

    async fn create(&self, object: &AwsResource, intent: Option<&Pending>, document: &Value) -> CloudResult<Written> {
        let token = intent.map(|intent| intent.token.trim_start_matches(INTENT)).unwrap_or_default();
        let event = self.issue_create(object, token, document).await?;
        written(self, object, event, "CREATE", None).await
    }

    async fn update(
        &self,
        object: &AwsResource,
        thing: &Thing,
        document: &Value,
        changes: &[Change],
    ) -> CloudResult<Written> {
        let body = json!({
            "TypeName": object.spec.type_name,
            "Identifier": thing.id,
            "PatchDocument": Json::Array(patch(document, &thing.document, changes)).to_string(),
        });
        let event = self.request(object, "UpdateResource", body).await?;
        written(self, object, event, "UPDATE", Some(&thing.id)).await
    }

    /// Not every type has tags: that it was taken over is in the object's status alone.
    async fn claim(&self, _: &AwsResource, _: &Thing) -> CloudResult<()> {
        Ok(())
    }

    async fn dismantle(&self, object: &AwsResource, thing: &Thing) -> CloudResult<Dismantled> {
        let body = json!({"TypeName": object.spec.type_name, "Identifier": thing.id});
        let event = match self.ask(object, "DeleteResource", body).await {
            Ok(answer) => event(&answer)?,
            Err(error) if error.code.as_deref() == Some("ResourceNotFoundException") => return Ok(Dismantled::Deleted),
            Err(error) => return Err(cloud_error(error)),
        };
        match progress(&event) {
            Progress::Done(_) => Ok(Dismantled::Deleted),
            Progress::Working(_) => Ok(Dismantled::Pending(Pending { operation: "DELETE".into(), token: event.token })),
            Progress::Failed(error) if error.fault == Fault::NotFound => Ok(Dismantled::Deleted),
            Progress::Failed(error) => Err(error),
        }
    }

    async fn poll(&self, object: &AwsResource, pending: &Pending, document: Option<&Value>) -> CloudResult<Progress> {
        if let Some(token) = pending.token.strip_prefix(INTENT) {
            let Some(document) = document.filter(|document| document.as_object().is_some()) else {
                return Ok(Progress::Done(None));
            };
            return Ok(progress(&self.issue_create(object, token, document).await?));
        }
        let asked = self.ask(object, "GetResourceRequestStatus", json!({"RequestToken": pending.token})).await;
        let event = match asked {
            Ok(answer) => event(&answer)?,
            // AWS forgets requests after a week. What became of it is seen by looking, if there is something to look at.
            Err(error) if error.code.as_deref() == Some("RequestTokenNotFoundException") => {
                return Ok(match object.status.as_ref().and_then(|status| status.id.clone()) {
                    Some(_) => Progress::Done(None),
                    None => Progress::Failed(CloudError::new(Fault::NotFound, error)),
                });
            }
            Err(error) => return Err(cloud_error(error)),
        };
        match progress(&event) {
            Progress::Failed(error) if pending.operation == "DELETE" && error.fault == Fault::NotFound => {
                Ok(Progress::Done(None))
            }
            other => Ok(other),
        }
    }
}

/// The thing, if the request is done already; else what to ask after.
async fn written(
    cloud: &CloudControl,
    object: &AwsResource,
    event: Event,
    operation: &str,
    id: Option<&str>,
) -> CloudResult<Written> {
    match progress(&event) {
        Progress::Failed(error) => Err(error),
        Progress::Done(made) => match made.as_deref().or(id) {
            Some(id) => match cloud.get(object, id).await? {
                Some(thing) => Ok(Written::Done(Box::new(thing))),
                // It is made and cannot be read yet: asked after until it can.
                None => Ok(Written::Pending(Pending { operation: operation.into(), token: event.token })),
            },
            None => Err(malformed("a request that is done names no resource")),
        },
        Progress::Working(_) => Ok(Written::Pending(Pending { operation: operation.into(), token: event.token })),
    }
}

/// A JSON patch that makes the changed properties what is declared, each as a whole: an index into an array that has
/// no order would mean another element to whoever reads it.
fn patch(document: &Value, live: &Value, changes: &[Change]) -> Vec<Json> {
    let names: BTreeSet<&String> = changes.iter().filter_map(|change| change.path.segments().first()).collect();
    let mut steps = Vec::new();
    for name in names {
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        match document.get(name) {
            Some(value) => steps.push(json!({"op": "add", "path": path, "value": value})),
            None if live.get(name).is_some() => steps.push(json!({"op": "remove", "path": path})),
            None => {}
        }
    }
    steps
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_patch_writes_whole_properties_and_removes_what_was_withdrawn() {
        let document: Value = serde_json::from_str(r#"{"A":{"x":1},"Tags":[{"Key":"k"}]}"#).unwrap();
        let live: Value = serde_json::from_str(r#"{"A":{"x":2,"y":3},"Tags":[],"Old":true}"#).unwrap();
        let change = |path: &str| Change { path: path.parse().unwrap(), expected: None, actual: None };
        let steps = patch(&document, &live, &[change("/A/x"), change("/A/y"), change("/Old"), change("/Never")]);
        let expected = json!([
            {"op": "add", "path": "/A", "value": {"x": 1}},
            {"op": "remove", "path": "/Old"},
        ]);
        assert_eq!(Json::Array(steps), expected);
    }
}
