//! The custom resources as Rust types. `driftline operator crds` prints them; `deploy/crds` has them committed.
//!
//! A `DistributionTenant` takes the manifests of the operator that this one follows, with another `apiVersion`.

#![expect(clippy::duplicated_attributes, reason = "columns of two kinds look alike")]
#![expect(unreachable_pub, reason = "the derive of `KubeSchema` makes a second type inside of a function")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const GROUP: &str = "driftline.dev";
pub const FINALIZER: &str = "driftline.dev/finalizer";

/// A tenant of a CloudFront distribution. The object's name is the tenant's name in AWS.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "driftline.dev",
    version = "v1alpha1",
    kind = "DistributionTenant",
    plural = "distributiontenants",
    shortname = "dt",
    category = "driftline",
    namespaced,
    status = "Status",
    derive = "PartialEq",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.tenantStatus"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Synced", type_ = "string", json_path = r#".status.conditions[?(@.type=="Synced")].status"#),
    printcolumn(name = "Drifted", type_ = "string", json_path = r#".status.conditions[?(@.type=="Drifted")].status"#),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.id"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) >= 3 && size(self.metadata.name) <= 128")
        .message("the name is the tenant's name in AWS: it has 3 to 128 characters")
)]
#[serde(rename_all = "camelCase")]
pub struct DistributionTenantSpec {
    /// The multi-tenant distribution that serves this tenant.
    #[schemars(length(min = 1))]
    pub distribution_id: String,
    /// The domains that this tenant serves. Order, letter case and repetition do not count.
    #[schemars(length(min = 1))]
    pub domains: Vec<Domain>,
    /// Whether the tenant serves traffic.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The connection group; where it is not given, the account's default one, and it is not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_group_id: Option<String>,
    /// Values for the parameters of the distribution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// What differs from the distribution for this tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customizations: Option<Customizations>,
    /// A certificate that CloudFront is to ask for. It is requested; an issued one is kept, and attaching it is not
    /// done here (see the condition `CertificateReady`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_certificate_request: Option<ManagedCertificateRequest>,
    /// Tags of the tenant. They are written and not read back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// DNS records for the domains. Accepted and not acted on (see the condition `DNSReady`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns: Option<Dns>,
}

fn yes() -> bool {
    true
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Domain {
    #[schemars(length(min = 1))]
    pub domain: String,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Parameter {
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[a-zA-Z0-9-_]+$"))]
    pub name: String,
    #[schemars(length(min = 1, max = 256))]
    pub value: String,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Customizations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_acl: Option<WebAcl>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geo_restrictions: Option<GeoRestrictions>,
}

#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[x_kube(validation = Rule::new("self.action != 'override' || (has(self.arn) && self.arn != '')")
    .message("arn is required when action is override"))]
pub struct WebAcl {
    pub action: WebAclAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arn: Option<String>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum WebAclAction {
    Disable,
    Override,
}

#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Certificate {
    #[x_kube(validation = Rule::new("self.startsWith('arn:aws:acm:us-east-1:')")
        .message("the certificate must be in ACM in us-east-1: its ARN begins with arn:aws:acm:us-east-1:"))]
    pub arn: String,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GeoRestrictions {
    pub restriction_type: RestrictionType,
    /// Two-letter country codes; their order does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<String>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum RestrictionType {
    None,
    Whitelist,
    Blacklist,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ManagedCertificateRequest {
    pub validation_token_host: ValidationTokenHost,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_domain_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_transparency_logging_preference: Option<TransparencyLogging>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum ValidationTokenHost {
    #[serde(rename = "cloudfront")]
    CloudFront,
    SelfHosted,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum TransparencyLogging {
    Enabled,
    Disabled,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Tag {
    #[schemars(length(min = 1, max = 128))]
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub value: Option<String>,
}

#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[x_kube(validation = Rule::new("self.provider != 'route53' || (has(self.hostedZoneId) && self.hostedZoneId != '')")
    .message("hostedZoneId is required for route53"))]
#[serde(rename_all = "camelCase")]
pub struct Dns {
    pub provider: DnsProvider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosted_zone_id: Option<String>,
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 60, max = 172_800))]
    pub ttl: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assume_role_arn: Option<String>,
}

fn five_minutes() -> i64 {
    300
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum DnsProvider {
    Route53,
}

/// Any resource that AWS Cloud Control serves, as CloudFormation writes it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "driftline.dev",
    version = "v1alpha1",
    kind = "AwsResource",
    plural = "awsresources",
    shortname = "awsr",
    category = "driftline",
    namespaced,
    status = "Status",
    derive = "PartialEq",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.typeName"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Synced", type_ = "string", json_path = r#".status.conditions[?(@.type=="Synced")].status"#),
    printcolumn(name = "Drifted", type_ = "string", json_path = r#".status.conditions[?(@.type=="Drifted")].status"#),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.id"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = Rule::new("has(self.region) == has(oldSelf.region)")
    .message("another region is another resource: make a new object"))]
#[serde(rename_all = "camelCase")]
pub struct AwsResourceSpec {
    /// The type, as CloudFormation writes it, e.g. `AWS::SQS::Queue`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9]{2,64}::[A-Za-z0-9]{2,64}::[A-Za-z0-9]{2,64}$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("another type is another resource: make a new object"))]
    pub type_name: String,
    /// Its properties in CloudFormation's form, without functions. Only what is given is compared.
    #[schemars(schema_with = "any_object")]
    pub properties: serde_json::Map<String, serde_json::Value>,
    /// Where it lives [default: the operator's region].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("another region is another resource: make a new object"))]
    pub region: Option<String>,
    /// What is done about drift: enforce, report or suspend. The annotation `driftline.dev/drift-policy` goes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_policy: Option<SpecPolicy>,
    /// Differences that do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<Ignore>,
}

#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum SpecPolicy {
    Enforce,
    Report,
    Suspend,
}

/// A place whose differences do not count, and why.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Ignore {
    /// A JSON pointer, in which `*` stands for any one segment and `**` for any number of them.
    #[schemars(length(min = 2), regex(pattern = r"^/"))]
    pub path: String,
    #[schemars(length(min = 1))]
    pub reason: String,
}

/// What the operator knows.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The generation of the declaration that was last acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The identifier in AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arn: Option<String>,
    /// The version of the thing that was last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e_tag: Option<String>,
    /// What AWS calls the tenant's state: `Deployed` or `InProgress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_status: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// True while drift is there, and under suspend, where nobody looks (see the condition `DriftChecked`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_detected: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// Corrections since live was last as declared; the next one waits longer each time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrections: Option<Corrections>,
    /// What someone else had changed and a change of the declaration wrote over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwritten: Option<Overwritten>,
    /// When live was last compared, as of the last change of this status. The metrics have it to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checked: Option<String>,
    /// What was last written to AWS. Secrets are sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub last_applied: Option<serde_json::Value>,
    /// A request to AWS that has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// The value of the annotation `driftline.dev/reconcile-at` that was last acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled_reconcile_at: Option<String>,
}

/// How live is not as declared.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// When it was first seen.
    pub first_detected: String,
    /// The places that differ, in order, up to a limit.
    #[serde(default)]
    pub fields: Vec<DriftField>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// How often it was corrected without being found as declared afterwards.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Corrections {
    pub attempts: i64,
    pub last: String,
    /// The next correction is not before this time.
    pub next: String,
}

/// What a change of the declaration wrote over, and when.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Overwritten {
    pub at: String,
    pub fields: Vec<DriftField>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: i64,
}

/// One place that differs. A side that is not there is absent; a sealed value says only that it changed.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct DriftField {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub expected: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub actual: Option<serde_json::Value>,
}

/// A request that AWS is working on.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Pending {
    pub operation: String,
    pub token: String,
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A list with one condition of each type, as server-side apply understands it.
fn conditions(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let item = generator.subschema_for::<Condition>();
    schemars::json_schema!({
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// All definitions, each with the name of the file it is committed as.
pub fn definitions() -> [(&'static str, CustomResourceDefinition); 2] {
    [
        ("driftline.dev_distributiontenants.yaml", DistributionTenant::crd()),
        ("driftline.dev_awsresources.yaml", AwsResource::crd()),
    ]
}

/// A definition as YAML.
pub fn to_yaml(definition: &CustomResourceDefinition) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(definition)
}

#[cfg(test)]
#[path = "crd_tests.rs"]
mod tests;
