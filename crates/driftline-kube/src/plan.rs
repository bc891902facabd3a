//! What the operator would do, without doing it: every object is looked at once, and nothing is written anywhere.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde::Serialize;

use crate::cloud::Cloud;
use crate::cloudcontrol::CloudControl;
use crate::cloudfront::CloudFront;
use crate::context::{Clock, Context, Fence};
use crate::crd::{AwsResource, DistributionTenant, DriftField};
use crate::decision::{Decision, Policy};
use crate::look::{judge, look};
use crate::managed::{Kind, Managed};
use crate::metrics::Metrics;
use crate::operator::{OperatorError, api, check_definitions};
use crate::settings::{Defaults, Settings};
use crate::status::fields;

/// What would be done about one object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Whether that would write to AWS.
    pub writes: bool,
    pub fields: Vec<DriftField>,
    #[serde(skip_serializing_if = "is_zero")]
    pub more: i64,
    /// Why it could not be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// All objects, by kind, namespace and name.
pub async fn plan(
    client: Client,
    aws: aws_wire::Client,
    defaults: Defaults,
    namespaces: &[String],
    clock: Clock,
) -> Result<Vec<Planned>, OperatorError> {
    check_definitions(&client, namespaces).await?;
    let all: Api<Namespace> = Api::all(client.clone());
    let listed =
        all.list_metadata(&ListParams::default()).await.map_err(|error| OperatorError::Api(Box::new(error)))?;
    let annotations: BTreeMap<String, BTreeMap<String, String>> =
        listed.items.into_iter().map(|one| (one.name_any(), one.annotations().clone())).collect();
    let context = |cloud| Context::new(cloud, (), Metrics::default(), defaults, clock, Fence::new(|| false), None);
    let tenants = context(CloudFront::new(aws.clone()));
    let mut planned = of_kind::<DistributionTenant, _>(&client, namespaces, &annotations, &tenants).await?;
    let resources =
        Context::new(CloudControl::new(aws), (), Metrics::default(), defaults, clock, Fence::new(|| false), None);
    planned.extend(of_kind::<AwsResource, _>(&client, namespaces, &annotations, &resources).await?);
    Ok(planned)
}

async fn of_kind<K: Managed, C: Cloud<K>>(
    client: &Client,
    namespaces: &[String],
    annotations: &BTreeMap<String, BTreeMap<String, String>>,
    context: &Context<C, ()>,
) -> Result<Vec<Planned>, OperatorError> {
    let places: Vec<Option<&String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().map(Some).collect() };
    let mut objects: Vec<K> = Vec::new();
    for place in places {
        let listed = api::<K>(client, place).list(&ListParams::default()).await;
        objects.extend(listed.map_err(|error| OperatorError::Api(Box::new(error)))?.items);
    }
    objects.sort_by_key(|object| (object.namespace(), object.name_any()));
    let none = BTreeMap::new();
    let mut planned = Vec::new();
    for object in objects {
        let namespace = annotations.get(&object.namespace().unwrap_or_default()).unwrap_or(&none);
        planned.push(one(context, &object, namespace).await);
    }
    Ok(planned)
}

async fn one<K: Managed, C: Cloud<K>>(
    context: &Context<C, ()>,
    object: &K,
    namespace: &BTreeMap<String, String>,
) -> Planned {
    let mut planned = Planned {
        kind: K::KIND,
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        policy: None,
        decision: None,
        writes: false,
        fields: Vec::new(),
        more: 0,
        error: None,
    };
    let settings = match Settings::of(object, namespace, context.defaults) {
        Ok(settings) => settings,
        Err(error) => return Planned { error: Some(error), ..planned },
    };
    planned.policy = Some(settings.policy);
    let desired = match object.desired() {
        Ok(desired) => desired,
        Err(error) => return Planned { error: Some(error), ..planned },
    };
    let status = object.status().cloned().unwrap_or_default();
    match look(context, object, &status, Some(&desired), true).await {
        Err(trouble) => planned.error = Some(trouble.to_string()),
        Ok(sight) => {
            let judged = judge(object, &status, &settings, &desired, &sight);
            planned.decision = Some(judged.decision);
            planned.writes = judged.decision.writes();
            let told = match judged.decision {
                Decision::Leave | Decision::Release | Decision::Dismantle => &[][..],
                _ => &judged.found.changes[..],
            };
            (planned.fields, planned.more) = fields(object, told);
        }
    }
    planned
}
