#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::crd::DistributionTenantSpec;
use crate::managed::Managed;

fn tenant(spec: &str) -> DistributionTenant {
    let spec: DistributionTenantSpec = serde_json::from_str(spec).unwrap();
    DistributionTenant::new("acme", spec)
}

const FULL: &str = r#"{
    "distributionId": "E1", "connectionGroupId": "cg_1", "enabled": false,
    "domains": [{"domain": "A.example.com"}, {"domain": "b.example.com"}, {"domain": "a.example.com"}],
    "parameters": [{"name": "who", "value": "R&D <x>"}],
    "customizations": {
        "webAcl": {"action": "override", "arn": "arn:aws:wafv2:1"},
        "certificate": {"arn": "arn:aws:acm:us-east-1:1:certificate/c"},
        "geoRestrictions": {"restrictionType": "whitelist", "locations": ["FR", "DE", "FR"]}
    }
}"#;

/// What is sent, read as if it were an answer, is what was declared.
#[test]
fn what_is_sent_reads_back_as_what_was_declared() {
    for spec in [FULL, r#"{"distributionId": "E1", "domains": [{"domain": "a.example.com"}]}"#] {
        let object = tenant(spec);
        let desired = object.desired().unwrap();
        let sent = wrapped("UpdateDistributionTenantRequest", &body_of(&desired));
        let read = document_of(&Element::parse(sent.as_bytes()).unwrap()).unwrap();
        let found = object.compare(&desired, &read, None, &[]);
        assert_eq!(found.changes, [], "{spec}");
    }
}

#[test]
fn what_is_removed_from_the_declaration_is_sent_as_empty() {
    let object = tenant(r#"{"distributionId": "E1", "domains": [{"domain": "a.example.com"}]}"#);
    let body = body_of(&object.desired().unwrap());
    for part in ["<Customizations></Customizations>", "<Parameters></Parameters>", "<Enabled>true</Enabled>"] {
        assert!(body.contains(part), "{body}");
    }
    assert!(!body.contains("ConnectionGroupId"), "{body}");
}

#[test]
fn what_only_aws_sets_is_not_in_the_document() {
    let answer = br"<DistributionTenant><Id>dt_1</Id><DistributionId>E1</DistributionId><Name>acme</Name>
        <Arn>arn:aws:cloudfront::1:distribution-tenant/dt_1</Arn>
        <Domains><member><Domain>a.example.com</Domain><Status>active</Status></member></Domains>
        <ConnectionGroupId>cg_default</ConnectionGroupId><CreatedTime>2026-01-01T00:00:00Z</CreatedTime>
        <LastModifiedTime>2026-01-01T00:00:00Z</LastModifiedTime><Enabled>true</Enabled><Status>Deployed</Status>
        <Tags><Items><Tag><Key>driftline.dev/owner</Key><Value>uid-1</Value></Tag></Items></Tags></DistributionTenant>";
    let root = Element::parse(answer).unwrap();
    let object = tenant(r#"{"distributionId": "E1", "domains": [{"domain": "a.example.com"}]}"#);
    let found = object.compare(&object.desired().unwrap(), &document_of(&root).unwrap(), None, &[]);
    assert_eq!(found.changes, []);
    assert_eq!(owner_in(&root.all("Tags/Items/Tag")).as_deref(), Some("uid-1"));
}
