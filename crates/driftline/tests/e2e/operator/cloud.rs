//! AWS as far as the operator sees it: an emulator, a proxy that makes it unpleasant, and somebody else who changes
//! things behind the operator's back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use fake_aws::{Emulator, Proxy, Settings};
use serde_json::{Value as Json, json};

use super::http::{Reply, ask};
use crate::support::{skip, variable};

const REGION: &str = "us-east-1";

/// One account of its own, empty but for a distribution.
pub(crate) struct Cloud {
    proxy: Proxy,
    emulator: u16,
    pub account: String,
    pub distribution: String,
}

/// A tenant as the emulator has it.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub id: String,
    etag: String,
    xml: String,
}

impl Tenant {
    /// The text of the first element of this name.
    pub(crate) fn text(&self, element: &str) -> Option<&str> {
        between(&self.xml, element).into_iter().next()
    }

    pub(crate) fn texts(&self, element: &str) -> Vec<&str> {
        between(&self.xml, element)
    }
}

/// What is inside of every element of this name.
fn between<'t>(xml: &'t str, element: &str) -> Vec<&'t str> {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let parts = xml.split(open.as_str()).skip(1);
    parts.filter_map(|part| part.split(close.as_str()).next()).collect()
}

fn emulator() -> Option<&'static Emulator> {
    static SHARED: OnceLock<Option<Emulator>> = OnceLock::new();
    let start = || match variable("DRIFTLINE_TEST_AWS").map(PathBuf::from) {
        Some(environment) => Some(Emulator::ministack(&environment).unwrap()),
        None => {
            skip("DRIFTLINE_TEST_AWS is not set; scripts/aws-env makes what it names");
            None
        }
    };
    SHARED.get_or_init(start).as_ref()
}

impl Cloud {
    pub(crate) fn new() -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(100_000_000_001);
        let emulator = emulator()?;
        let account = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
        let proxy = Proxy::start(Settings::before(emulator.url())).unwrap();
        let port = emulator.url().rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap();
        let mut cloud = Self { proxy, emulator: port, account, distribution: String::new() };
        cloud.distribution = cloud.new_distribution();
        Some(cloud)
    }

    /// What the operator's environment says of AWS.
    pub(crate) fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", self.proxy.url()),
            ("AWS_REGION", REGION.into()),
            ("AWS_ACCESS_KEY_ID", self.account.clone()),
            ("AWS_SECRET_ACCESS_KEY", "test".into()),
            ("AWS_EC2_METADATA_DISABLED", "true".into()),
        ]
    }

    /// Somebody else, who does not go through the proxy.
    fn ask(&self, method: &str, path: &str, etag: Option<&str>, body: &str) -> Reply {
        let credential = format!(
            "AWS4-HMAC-SHA256 Credential={}/20260101/{REGION}/cloudfront/aws4_request, SignedHeaders=host, Signature=0",
            self.account
        );
        let mut headers = vec![("authorization", credential.as_str()), ("content-type", "text/xml")];
        headers.extend(etag.map(|etag| ("if-match", etag)));
        ask(self.emulator, method, &format!("/2020-05-31/{path}"), &headers, body).unwrap()
    }

    pub(crate) fn new_distribution(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let reference = NEXT.fetch_add(1, Ordering::Relaxed);
        let body = format!(
            "<DistributionConfig xmlns=\"http://cloudfront.amazonaws.com/doc/2020-05-31/\">\
             <CallerReference>{reference}</CallerReference><Comment></Comment><Enabled>true</Enabled>\
             <ConnectionMode>tenant-only</ConnectionMode><Origins><Quantity>1</Quantity><Items><Origin><Id>o</Id>\
             <DomainName>origin.example.com</DomainName></Origin></Items></Origins><DefaultCacheBehavior>\
             <TargetOriginId>o</TargetOriginId><ViewerProtocolPolicy>allow-all</ViewerProtocolPolicy>\
             </DefaultCacheBehavior></DistributionConfig>"
        );
        let reply = self.ask("POST", "distribution", None, &body);
        assert_eq!(reply.status, 201, "{}", reply.body);
        between(&reply.body, "Id")[0].to_owned()
    }

    /// The tenant of this name or id, if there is one.
    pub(crate) fn tenant(&self, name: &str) -> Option<Tenant> {
        let reply = self.ask("GET", &format!("distribution-tenant/{name}"), None, "");
        (reply.status == 200).then(|| Tenant {
            id: between(&reply.body, "Id")[0].to_owned(),
            etag: reply.header("etag").unwrap().to_owned(),
            xml: reply.body,
        })
    }

    /// Names of all tenants of the account.
    pub(crate) fn tenants(&self) -> Vec<String> {
        let reply = self.ask("POST", "distribution-tenants", None, "<ListDistributionTenantsRequest/>");
        assert_eq!(reply.status, 200, "{}", reply.body);
        let mut names: Vec<String> = between(&reply.body, "Name").into_iter().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// Somebody changes these members of a tenant.
    pub(crate) fn meddle(&self, name: &str, members: &str) {
        let tenant = self.tenant(name).unwrap_or_else(|| panic!("there is no tenant {name}"));
        let body = format!("<UpdateDistributionTenantRequest>{members}</UpdateDistributionTenantRequest>");
        let reply = self.ask("PUT", &format!("distribution-tenant/{}", tenant.id), Some(&tenant.etag), &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// Somebody deletes a tenant.
    pub(crate) fn delete(&self, name: &str) {
        self.meddle(name, "<Enabled>false</Enabled>");
        let tenant = self.tenant(name).unwrap();
        let reply = self.ask("DELETE", &format!("distribution-tenant/{}", tenant.id), Some(&tenant.etag), "");
        assert_eq!(reply.status, 204, "{}", reply.body);
    }

    /// Somebody asks Cloud Control; nothing if that says no.
    pub(crate) fn control(&self, operation: &str, body: &Json) -> Option<Json> {
        let credential = format!(
            "AWS4-HMAC-SHA256 Credential={}/20260101/{REGION}/cloudcontrolapi/aws4_request, SignedHeaders=host, Signature=0",
            self.account
        );
        let target = format!("CloudApiService.{operation}");
        let headers = [
            ("authorization", credential.as_str()),
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-target", &target),
        ];
        let reply = ask(self.emulator, "POST", "/", &headers, &body.to_string()).unwrap();
        (reply.status == 200).then(|| serde_json::from_str(&reply.body).unwrap())
    }

    /// From now on these rules of the proxy hold, and no others.
    pub(crate) fn rules(&self, rules: Json) {
        self.proxy.set_rules(serde_json::from_value(rules).unwrap());
    }

    pub(crate) fn no_rules(&self) {
        self.rules(json!([]));
    }

    pub(crate) fn forget_calls(&self) {
        self.proxy.forget_calls();
    }

    /// How often each operation was asked for, whatever came of it.
    pub(crate) fn calls(&self) -> BTreeMap<String, u64> {
        let mut calls = BTreeMap::new();
        for counted in self.proxy.calls() {
            *calls.entry(counted.call.operation).or_default() += counted.calls;
        }
        calls
    }

    /// How often something was to be changed.
    pub(crate) fn writes(&self) -> BTreeMap<String, u64> {
        let mut calls = self.calls();
        calls.retain(|operation, _| {
            ["Create", "Update", "Delete", "Tag", "Untag"].iter().any(|verb| operation.starts_with(verb))
        });
        calls
    }

    /// How often an outcome was counted, e.g. `injected throttled`.
    pub(crate) fn outcomes(&self, outcome: &str) -> u64 {
        self.proxy.calls().into_iter().filter(|one| one.call.outcome.contains(outcome)).map(|one| one.calls).sum()
    }
}
