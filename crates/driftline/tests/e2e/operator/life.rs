//! From creation to deletion, with nobody meddling.

use serde_json::json;

use super::process::eventually;
use super::world::{World, condition};

/// Every field that is compared.
const EVERYTHING: &str = "  parameters: [{name: path, value: /shop}, {name: theme, value: dark}]
  customizations:
    webAcl: {action: override, arn: 'arn:aws:wafv2:us-east-1:123456789012:global/webacl/w/1'}
    certificate: {arn: 'arn:aws:acm:us-east-1:123456789012:certificate/c'}
    geoRestrictions: {restrictionType: whitelist, locations: [DE, CH]}
  tags: [{key: team, value: payments}]
";

#[test]
fn a_tenant_is_created_changed_and_deleted_as_declared() {
    let Some(world) = World::new("life") else { return };
    let mut operator = world.operator(&[]);
    world.apply("shop", &["a.example.com", "b.example.com"], EVERYTHING);
    let object = world.wait_until_settled("shop");
    let tenant = world.cloud.tenant("shop").unwrap();
    assert_eq!(object["status"]["id"], tenant.id);
    assert_eq!(object["status"]["driftDetected"], false);
    assert_eq!(condition(&object, "Drifted"), ("False", "NoDrift"));
    assert_eq!(tenant.texts("Domain"), ["a.example.com", "b.example.com"]);
    assert_eq!(tenant.texts("Value").iter().filter(|value| ["/shop", "dark"].contains(*value)).count(), 2);
    assert_eq!(tenant.text("RestrictionType"), Some("whitelist"));
    assert_eq!(tenant.text("Enabled"), Some("true"));
    let printed = world.cluster.kubectl(["get", "distributiontenants", "-n", &world.namespace]).succeeded();
    printed.prints(&["NAME", "READY", "SYNCED", "DRIFTED", "shop", "True", &tenant.id]);

    // A change arrives, and what is taken away is gone.
    world.apply("shop", &["a.example.com"], "  enabled: false\n  parameters: [{name: path, value: /other}]\n");
    let changed = world.wait_until_settled("shop");
    assert!(changed["status"]["observedGeneration"].as_i64() > object["status"]["observedGeneration"].as_i64());
    let tenant = world.cloud.tenant("shop").unwrap();
    assert_eq!(tenant.texts("Domain"), ["a.example.com"]);
    assert_eq!(tenant.text("Enabled"), Some("false"));
    assert!(tenant.texts("Value").contains(&"/other") && !tenant.texts("Value").contains(&"dark"));
    assert_eq!(tenant.text("RestrictionType"), None, "what was taken out of the spec is taken out of AWS");

    world.cluster.kubectl(["delete", "distributiontenant", "shop", "-n", &world.namespace, "--wait=false"]).succeeded();
    world.wait_until_gone("shop");
    assert_eq!(world.cloud.tenants(), [""; 0]);

    // It goes when it is told to.
    operator.process.signal("TERM");
    eventually("the operator to end", || match operator.get("/healthz") {
        Err(_) => Ok(()),
        Ok(alive) => Err(alive),
    });
}

#[test]
fn a_spec_that_means_the_same_changes_nothing_in_aws() {
    let Some(world) = World::new("same") else { return };
    let _operator = world.operator(&[]);
    world.apply("shop", &["a.example.com", "b.example.com"], "  customizations: {}\n");
    let before = world.wait_until_settled("shop");
    world.cloud.forget_calls();
    world.apply("shop", &["B.example.com", "a.example.com", "b.example.com"], "");
    let after = world.wait_until_settled("shop");
    assert!(after["metadata"]["generation"].as_i64() > before["metadata"]["generation"].as_i64());
    assert_eq!(world.cloud.writes(), [].into());
    assert_eq!(condition(&after, "Drifted"), ("False", "NoDrift"));
}

#[test]
fn nothing_is_written_anywhere_while_nothing_changes() {
    let Some(world) = World::new("steady") else { return };
    let operator = world.operator(&[]);
    world.apply("shop", &["a.example.com"], EVERYTHING);
    let before = world.wait_until_settled("shop");
    world.cloud.forget_calls();
    eventually("ten more looks", || match world.cloud.calls().get("GetDistributionTenant") {
        Some(looks) if *looks >= 10 => Ok(()),
        looks => Err(format!("{looks:?}\n{}", operator.process.last_words())),
    });
    assert_eq!(world.cloud.writes(), [].into());
    let after = world.object("shop");
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "{after:#}\n{before:#}");
}

#[test]
fn the_api_server_refuses_what_makes_no_sense() {
    let Some(world) = World::new("refused") else { return };
    for (name, more, said) in [
        ("shop", "  customizations: {webAcl: {action: override}}\n", "arn is required"),
        ("shop", "  customizations: {certificate: {arn: 'arn:aws:acm:eu-west-1:1:certificate/c'}}\n", "us-east-1"),
        ("shop", "  parameters: [{name: 'a b', value: x}]\n", "parameters"),
        ("ab", "", "3 to 128"),
    ] {
        let manifest = world.manifest(name, &["a.example.com"], more);
        let refused = world.cluster.kubectl_with(&manifest, &["create"]);
        assert_ne!(refused.code, 0, "{more}");
        assert!(refused.err.contains(said), "{}", refused.err);
    }
    assert_eq!(json!(world.objects()), json!([]));
}
