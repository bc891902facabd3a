//! Distribution tenants in CloudFront, over its REST and XML protocol.
//!
//! An update always carries every member: what AWS makes of one that is left out is not documented.

use aws_wire::call::encode_segment;
use aws_wire::{Body, Call, Client, Element, Protocol};
use driftline_core::{Change, Value};
use kube::ResourceExt as _;
use std::collections::BTreeMap;

use crate::aws::cloud_error;
use crate::cloud::{Cloud, CloudError, CloudResult, Dismantled, Fault, OWNER_TAG, Progress, Thing, Written};
use crate::crd::{DistributionTenant, Pending};
use crate::decision::Live;
use crate::tenant::{domains, member};

const SERVICE: &str = "cloudfront";
const ROOT: &str = "/2020-05-31";
const NAMESPACE: &str = "http://cloudfront.amazonaws.com/doc/2020-05-31/";

/// CloudFront of one account.
#[derive(Clone, Debug)]
pub struct CloudFront {
    client: Client,
}

impl CloudFront {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    fn call(operation: &'static str, method: &'static str, path: String) -> Call<'static> {
        Call::rest(SERVICE, operation, Protocol::RestXml, method, path)
    }

    fn tenant_path(id: &str) -> String {
        format!("{ROOT}/distribution-tenant/{}", encode_segment(id))
    }

    /// By id, ARN or name: CloudFront takes any of them.
    async fn get(&self, identifier: &str) -> CloudResult<Option<Thing>> {
        let call = Self::call("GetDistributionTenant", "GET", Self::tenant_path(identifier));
        match self.client.call(&call).await {
            Ok(reply) => thing(&reply).map(Some),
            Err(error) if is_not_found(&error) => Ok(None),
            // Something on the way says that there is nothing; that is not CloudFront saying so.
            Err(error) if error.kind == aws_wire::Kind::NotFound => Err(CloudError::new(Fault::Unavailable, error)),
            Err(error) => Err(cloud_error(error)),
        }
    }

    /// The tags, asked for where the tenant did not bring them.
    async fn owner(&self, arn: &str) -> CloudResult<Option<String>> {
        let mut call = Self::call("ListTagsForResource", "GET", format!("{ROOT}/tagging"));
        call.query = vec![("Resource".into(), arn.into())];
        let reply = self.client.call(&call).await.map_err(cloud_error)?;
        Ok(owner_in(&reply.xml().map_err(cloud_error)?.all("Items/Tag")))
    }

    async fn put(&self, thing: &Thing, document: &Value, request_certificate: bool) -> CloudResult<Thing> {
        let mut call = Self::call("UpdateDistributionTenant", "PUT", Self::tenant_path(&thing.id));
        call.headers = vec![("If-Match".into(), thing.etag.clone().unwrap_or_default())];
        let mut body = body_of(document);
        if request_certificate {
            body += &certificate_request(document);
        }
        call.body = Body::Xml(wrapped("UpdateDistributionTenantRequest", &body));
        let reply = self.client.call(&call).await.map_err(cloud_error)?;
        let mut written = self::thing(&reply)?;
        written.owner = written.owner.or_else(|| thing.owner.clone());
        Ok(written)
    }

    async fn tag(&self, arn: &str, tags: &BTreeMap<String, Value>) -> CloudResult<()> {
        if tags.is_empty() {
            return Ok(());
        }
        let mut call = Self::call("TagResource", "POST", format!("{ROOT}/tagging"));
        call.query = vec![("Operation".into(), "Tag".into()), ("Resource".into(), arn.into())];
        call.body = Body::Xml(wrapped("Tags", &tag_items(tags)));
        self.client.call(&call).await.map(|_| ()).map_err(cloud_error)
    }

    async fn untag(&self, arn: &str, keys: &[&String]) -> CloudResult<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut call = Self::call("UntagResource", "POST", format!("{ROOT}/tagging"));
        call.query = vec![("Operation".into(), "Untag".into()), ("Resource".into(), arn.into())];
        let keys: String = keys.iter().map(|key| text("Key", key)).collect();
        call.body = Body::Xml(wrapped("TagKeys", &element("Items", &keys)));
        self.client.call(&call).await.map(|_| ()).map_err(cloud_error)
    }
}

impl Cloud<DistributionTenant> for CloudFront {
    async fn find(&self, object: &DistributionTenant) -> CloudResult<Option<Thing>> {
        let Some(mut thing) = self.get(&object.name_any()).await? else { return Ok(None) };
        if thing.owner.is_none()
            && let Some(arn) = thing.arn.clone()
        {
            thing.owner = self.owner(&arn).await?;
        }
        Ok(Some(thing))
    }

    async fn read(&self, _: &DistributionTenant, id: &str) -> CloudResult<Option<Thing>> {
        self.get(id).await
    }

    /// Names are unique in an account, so a tenant whose making nobody saw the end of is found by its name.
    fn intent(&self, _: &DistributionTenant, _: &str) -> Option<Pending> {
        None
    }

    async fn create(&self, object: &DistributionTenant, _: Option<&Pending>, document: &Value) -> CloudResult<Written> {
        let mut tags = document.get(member::TAGS).and_then(Value::as_object).cloned().unwrap_or_default();
        let owner = object.uid().unwrap_or_default();
        tags.insert(OWNER_TAG.into(), Value::from(owner.as_str()));
        let mut call = Self::call("CreateDistributionTenant", "POST", format!("{ROOT}/distribution-tenant"));
        let body = text("Name", &object.name_any())
            + &body_of(document)
            + &certificate_request(document)
            + &element("Tags", &tag_items(&tags));
        call.body = Body::Xml(wrapped("CreateDistributionTenantRequest", &body));
        let reply = self.client.call(&call).await.map_err(cloud_error)?;
        Ok(Written::Done(Box::new(Thing { owner: Some(owner), ..thing(&reply)? })))
    }

    async fn update(
        &self,
        _: &DistributionTenant,
        thing: &Thing,
        document: &Value,
        changes: &[Change],
    ) -> CloudResult<Written> {
        let touches =
            |name: &str| changes.iter().any(|change| change.path.segments().first().is_some_and(|at| at == name));
        if touches(member::TAGS)
            && let Some(arn) = &thing.arn
        {
            let none = BTreeMap::new();
            let tags = document.get(member::TAGS).and_then(Value::as_object).unwrap_or(&none);
            self.tag(arn, tags).await?;
            let withdrawn = |change: &&Change| change.expected.is_none();
            let gone: Vec<&String> = changes
                .iter()
                .filter(withdrawn)
                .filter_map(|change| match change.path.segments() {
                    [at, key] if at == member::TAGS => Some(vec![key]),
                    [at] if at == member::TAGS => change.actual.as_ref()?.as_object().map(|tags| tags.keys().collect()),
                    _ => None,
                })
                .flatten()
                .collect();
            self.untag(arn, &gone).await?;
        }
        let written = self.put(thing, document, touches(member::MANAGED_CERTIFICATE)).await?;
        Ok(Written::Done(Box::new(written)))
    }

    async fn claim(&self, object: &DistributionTenant, thing: &Thing) -> CloudResult<()> {
        let arn = thing.arn.clone().unwrap_or_default();
        let owner = Value::from(object.uid().unwrap_or_default().as_str());
        self.tag(&arn, &BTreeMap::from([(OWNER_TAG.to_owned(), owner)])).await
    }

    async fn dismantle(&self, _: &DistributionTenant, thing: &Thing) -> CloudResult<Dismantled> {
        if thing.document.get(member::ENABLED) == Some(&Value::Bool(true)) {
            // As it is, but switched off: nothing else of it is lost should the deletion not come to its end.
            let mut document = thing.document.clone();
            if let Value::Object(members) = &mut document {
                members.insert(member::ENABLED.into(), Value::Bool(false));
            }
            return Ok(Dismantled::Disabled(Box::new(self.put(thing, &document, false).await?)));
        }
        let mut call = Self::call("DeleteDistributionTenant", "DELETE", Self::tenant_path(&thing.id));
        call.headers = vec![("If-Match".into(), thing.etag.clone().unwrap_or_default())];
        match self.client.call(&call).await {
            Ok(_) => Ok(Dismantled::Deleted),
            Err(error) if is_not_found(&error) => Ok(Dismantled::Deleted),
            Err(error) => Err(cloud_error(error)),
        }
    }

    async fn poll(&self, _: &DistributionTenant, _: &Pending, _: Option<&Value>) -> CloudResult<Progress> {
        Ok(Progress::Done(None))
    }
}

fn is_not_found(error: &aws_wire::Error) -> bool {
    matches!(error.code.as_deref(), Some("EntityNotFound" | "NoSuchDistributionTenant"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn element(name: &str, inside: &str) -> String {
    format!("<{name}>{inside}</{name}>")
}

fn text(name: &str, value: &str) -> String {
    element(name, &escaped(value))
}

fn wrapped(name: &str, inside: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><{name} xmlns=\"{NAMESPACE}\">{inside}</{name}>")
}

fn tag_items(tags: &BTreeMap<String, Value>) -> String {
    let tag = |(key, value): (&String, &Value)| {
        element("Tag", &(text("Key", key) + &text("Value", value.as_str().unwrap_or_default())))
    };
    element("Items", &tags.iter().map(tag).collect::<String>())
}

/// Every member of a document that both creating and updating take; those without a value are sent empty.
fn body_of(document: &Value) -> String {
    let string = |value: Option<&Value>| value.and_then(Value::as_str).map(ToOwned::to_owned);
    let mut body = String::new();
    if let Some(id) = string(document.get(member::DISTRIBUTION)) {
        body += &text("DistributionId", &id);
    }
    let all = document.get(member::DOMAINS).and_then(Value::as_array).unwrap_or_default();
    let domain = |value: &Value| element("member", &text("Domain", value.as_str().unwrap_or_default()));
    body += &element("Domains", &all.iter().map(domain).collect::<String>());
    body += &element("Customizations", &customizations(document.get(member::CUSTOMIZATIONS)));
    let none = BTreeMap::new();
    let parameters = document.get(member::PARAMETERS).and_then(Value::as_object).unwrap_or(&none);
    let parameter = |(name, value): (&String, &Value)| {
        element("member", &(text("Name", name) + &text("Value", value.as_str().unwrap_or_default())))
    };
    body += &element("Parameters", &parameters.iter().map(parameter).collect::<String>());
    if let Some(group) = string(document.get(member::CONNECTION_GROUP)) {
        body += &text("ConnectionGroupId", &group);
    }
    let enabled = document.get(member::ENABLED) != Some(&Value::Bool(false));
    body + &text("Enabled", if enabled { "true" } else { "false" })
}

fn customizations(value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    let string = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let mut body = String::new();
    if let Some(acl) = value.get("webAcl") {
        let action = text("Action", &string(acl, "action").unwrap_or_default());
        let arn = string(acl, "arn").filter(|arn| !arn.is_empty()).map(|arn| text("Arn", &arn));
        body += &element("WebAcl", &(action + &arn.unwrap_or_default()));
    }
    if let Some(arn) = value.get("certificate").and_then(|one| string(one, "arn")) {
        body += &element("Certificate", &text("Arn", &arn));
    }
    if let Some(geo) = value.get("geoRestrictions") {
        let kind = text("RestrictionType", &string(geo, "restrictionType").unwrap_or_default());
        let locations = geo.get("locations").and_then(Value::as_array).unwrap_or_default();
        let location = |value: &Value| text("Location", value.as_str().unwrap_or_default());
        let locations: String = locations.iter().map(location).collect();
        let locations = if locations.is_empty() { String::new() } else { element("Locations", &locations) };
        body += &element("GeoRestrictions", &(kind + &locations));
    }
    body
}

fn certificate_request(document: &Value) -> String {
    let Some(request) = document.get(member::MANAGED_CERTIFICATE) else { return String::new() };
    let members = [
        ("ValidationTokenHost", "validationTokenHost"),
        ("PrimaryDomainName", "primaryDomainName"),
        ("CertificateTransparencyLoggingPreference", "certificateTransparencyLoggingPreference"),
    ];
    let part = |(name, at): (&str, &str)| request.get(at).and_then(Value::as_str).map(|value| text(name, value));
    element("ManagedCertificateRequest", &members.into_iter().filter_map(part).collect::<String>())
}

fn owner_in(tags: &[&Element]) -> Option<String> {
    let ours = tags.iter().find(|tag| tag.text_at("Key") == Some(OWNER_TAG))?;
    ours.text_at("Value").map(ToOwned::to_owned)
}

/// A tenant as the answer has it.
fn thing(reply: &aws_wire::Reply) -> CloudResult<Thing> {
    let root = reply.xml().map_err(cloud_error)?;
    let malformed = |why: &str| cloud_error(reply.malformed(why));
    let id = root.text_at("Id").filter(|id| !id.is_empty()).ok_or_else(|| malformed("it has no Id"))?;
    let etag = reply.header("etag").ok_or_else(|| malformed("it has no ETag"))?;
    let state = root.text_at("Status").map(ToOwned::to_owned);
    Ok(Thing {
        id: id.to_owned(),
        arn: root.text_at("Arn").map(ToOwned::to_owned),
        etag: Some(etag.to_owned()),
        live: if state.as_deref() == Some("InProgress") { Live::InProgress } else { Live::Present },
        state,
        owner: owner_in(&root.all("Tags/Items/Tag")),
        document: document_of(&root).ok_or_else(|| malformed("it has no DistributionId"))?,
    })
}

fn document_of(root: &Element) -> Option<Value> {
    let mut document = BTreeMap::new();
    document.insert(member::DISTRIBUTION.to_owned(), Value::from(root.text_at("DistributionId")?));
    let listed = root.child("Domains").map(|them| &them.children);
    let names = listed.into_iter().flatten().filter_map(|one| one.text_at("Domain"));
    document.insert(member::DOMAINS.to_owned(), domains(names));
    document.insert(member::ENABLED.to_owned(), Value::Bool(root.text_at("Enabled") != Some("false")));
    if let Some(group) = root.text_at("ConnectionGroupId").filter(|group| !group.is_empty()) {
        document.insert(member::CONNECTION_GROUP.to_owned(), Value::from(group));
    }
    let listed = root.child("Parameters").map(|them| &them.children);
    let parameters = listed.into_iter().flatten().filter_map(|one| {
        Some((one.text_at("Name")?.to_owned(), Value::from(one.text_at("Value").unwrap_or_default())))
    });
    document.insert(member::PARAMETERS.to_owned(), Value::Object(parameters.collect()));
    if let Some(customizations) = root.child("Customizations") {
        document.insert(member::CUSTOMIZATIONS.to_owned(), customizations_of(customizations));
    }
    Some(Value::Object(document))
}

fn customizations_of(element: &Element) -> Value {
    let mut members = BTreeMap::new();
    let string = |at: &Element, name: &str| at.text_at(name).filter(|text| !text.is_empty()).map(Value::from);
    if let Some(acl) = element.child("WebAcl") {
        let mut one = BTreeMap::new();
        one.extend(string(acl, "Action").map(|value| ("action".to_owned(), value)));
        one.extend(string(acl, "Arn").map(|value| ("arn".to_owned(), value)));
        members.insert("webAcl".to_owned(), Value::Object(one));
    }
    if let Some(arn) = element.child("Certificate").and_then(|one| string(one, "Arn")) {
        members.insert("certificate".to_owned(), Value::from([("arn", arn)]));
    }
    if let Some(geo) = element.child("GeoRestrictions") {
        let mut one = BTreeMap::new();
        one.extend(string(geo, "RestrictionType").map(|value| ("restrictionType".to_owned(), value)));
        let mut locations: Vec<Value> =
            geo.all("Locations/Location").iter().map(|one| Value::from(one.text.as_str())).collect();
        locations.sort();
        locations.dedup();
        if !locations.is_empty() {
            one.insert("locations".to_owned(), Value::Array(locations));
        }
        members.insert("geoRestrictions".to_owned(), Value::Object(one));
    }
    Value::Object(members)
}

#[cfg(test)]
#[path = "cloudfront_tests.rs"]
mod tests;
