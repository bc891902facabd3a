//! Somebody changes AWS behind the operator's back: every policy, and every way to set one.

use serde_json::Value as Json;

use super::process::eventually;
use super::world::{Operator, World, condition, drift_paths};

const DISABLED: &str = "<Enabled>false</Enabled>";

/// A settled tenant `shop` under a policy, and its operator.
fn settled(about: &str, policy: &str) -> Option<(World<'static>, Operator)> {
    let world = World::new(about)?;
    let operator = world.operator(&["--drift-policy", policy]);
    world.apply("shop", &["a.example.com"], "  parameters: [{name: theme, value: dark}]\n");
    world.wait("shop", "to be created", |object| condition(object, "Ready").0 == "True");
    Some((world, operator))
}

/// Waits for so many looks at AWS from now on.
fn look(world: &World<'_>, times: u64) {
    let looks = || world.cloud.calls().get("GetDistributionTenant").copied().unwrap_or_default();
    let before = looks();
    eventually("the operator to look again", || match looks() {
        now if now >= before + times => Ok(()),
        now => Err(now.to_string()),
    });
}

fn is_drifted(object: &Json) -> bool {
    condition(object, "Drifted").0 == "True"
}

fn annotate(world: &World<'_>, annotation: &str) {
    let arguments = ["annotate", "distributiontenant", "shop", "-n", &world.namespace, "--overwrite", annotation];
    world.cluster.kubectl(arguments).succeeded();
}

#[test]
fn enforce_puts_it_back_and_says_what_it_was() {
    let Some((world, operator)) = settled("enforce", "enforce") else { return };
    world.cloud.forget_calls();
    world.cloud.meddle(
        "shop",
        &format!("{DISABLED}<Parameters><member><Name>theme</Name><Value>light</Value></member></Parameters>"),
    );
    world.wait_for_tenant("shop", "to be put back", |tenant| {
        tenant.text("Enabled") == Some("true") && tenant.texts("Value").contains(&"dark")
    });
    world.wait_until_settled("shop");
    assert_eq!(world.cloud.writes()["UpdateDistributionTenant"], 1, "one correction is enough");
    let events = eventually("both events", || {
        let events = world.events("shop");
        let has = |reason: &str| events.iter().any(|(known, _)| known == reason);
        if has("DriftDetected") && has("DriftCorrected") { Ok(events.clone()) } else { Err(format!("{events:#?}")) }
    });
    let told = &events.iter().find(|(reason, _)| reason == "DriftDetected").unwrap().1;
    assert!(told.contains("/enabled") && told.contains("/parameters"), "{told}");
    assert!(operator.metric("driftline_operator_drift_total") >= 1, "{:#?}", operator.metrics());
}

#[test]
fn report_tells_the_fields_and_touches_nothing() {
    let Some((world, _operator)) = settled("report", "report") else { return };
    world.cloud.forget_calls();
    world.cloud.meddle("shop", DISABLED);
    let object = world.wait("shop", "to be drifted", is_drifted);
    assert_eq!(condition(&object, "Synced"), ("False", "DriftDetected"));
    assert_eq!(object["status"]["driftDetected"], true);
    assert_eq!(drift_paths(&object), ["/enabled"]);
    let field = &object["status"]["drift"]["fields"][0];
    assert_eq!((&field["expected"], &field["actual"]), (&true.into(), &false.into()));
    assert_eq!(condition(&object, "Ready").0, "True", "drift does not hide whether the tenant works");
    look(&world, 3);
    assert_eq!(world.cloud.writes(), [].into());
    let later = world.object("shop");
    assert_eq!(
        later["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"],
        "the same drift is told once"
    );

    // It ends when AWS is as declared again, however that came.
    world.cloud.meddle("shop", "<Enabled>true</Enabled>");
    let object = world.wait_until_settled("shop");
    assert_eq!(object["status"]["driftDetected"], false);
    assert_eq!(object["status"].get("drift"), None, "{object:#}");
}

#[test]
fn suspend_does_not_look_and_says_that_it_does_not() {
    let Some((world, _operator)) = settled("suspend", "suspend") else { return };
    world.cloud.forget_calls();
    world.cloud.meddle("shop", DISABLED);
    let object = world
        .wait("shop", "to say that nobody looks", |object| condition(object, "DriftChecked") == ("False", "Suspended"));
    assert_eq!(condition(&object, "Synced").0, "True");
    assert_ne!(condition(&object, "Drifted").0, "True", "nobody mistakes it for a finding");
    assert_eq!(object["status"]["driftDetected"], true);
    annotate(&world, "driftline.dev/reconcile-at=now");
    world.wait("shop", "to have been reconciled", |object| object["status"]["handledReconcileAt"] == "now");
    assert_eq!(world.cloud.writes(), [].into());
    assert_eq!(world.cloud.tenant("shop").unwrap().text("Enabled"), Some("false"));

    // And back: the same drift is found and put right.
    annotate(&world, "driftline.dev/drift-policy=enforce");
    world.wait_for_tenant("shop", "to be put back", |tenant| tenant.text("Enabled") == Some("true"));
    let object = world.wait_until_settled("shop");
    assert_eq!(condition(&object, "DriftChecked").0, "True");
    assert_eq!(object["status"]["driftDetected"], false);
}

#[test]
fn what_somebody_deleted_is_made_again_reported_or_left_alone() {
    let Some((world, _operator)) = settled("gone", "report") else { return };
    let id = world.cloud.tenant("shop").unwrap().id;
    world.cloud.forget_calls();
    world.cloud.delete("shop");
    let object = world.wait("shop", "to be reported gone", is_drifted);
    assert_eq!(condition(&object, "Synced").0, "False");
    look(&world, 2);
    assert_eq!(world.cloud.writes(), [].into());
    assert_eq!(world.cloud.tenants(), [""; 0]);

    annotate(&world, "driftline.dev/drift-policy=suspend");
    world.wait("shop", "to be left alone", |object| condition(object, "DriftChecked") == ("False", "Suspended"));
    assert_eq!(world.cloud.writes(), [].into());

    annotate(&world, "driftline.dev/drift-policy=enforce");
    let tenant = world.wait_for_tenant("shop", "to be made again", |tenant| tenant.text("Enabled") == Some("true"));
    assert_ne!(tenant.id, id);
    let object = world.wait("shop", "to know the new one", |object| object["status"]["id"] == tenant.id.as_str());
    assert_eq!(world.wait_until_settled("shop")["status"]["id"], object["status"]["id"]);
    assert_eq!(world.cloud.writes()["CreateDistributionTenant"], 1);
}

#[test]
fn a_spec_change_over_drift_names_what_it_overwrites() {
    let Some((world, operator)) = settled("over", "report") else { return };
    world.cloud.meddle("shop", "<Parameters><member><Name>theme</Name><Value>light</Value></member></Parameters>");
    world.wait("shop", "to be drifted", is_drifted);
    world.apply("shop", &["b.example.com"], "  parameters: [{name: theme, value: dark}]\n");
    let tenant =
        world.wait_for_tenant("shop", "to follow the spec", |tenant| tenant.texts("Domain") == ["b.example.com"]);
    assert!(tenant.texts("Value").contains(&"dark"), "a declaration is written whole");
    world.wait_until_settled("shop");
    let told = eventually("an event that names it", || {
        let events = world.events("shop");
        let told = events.iter().find(|(reason, _)| reason == "DriftOverwritten");
        told.cloned().ok_or_else(|| format!("{events:#?}\n{}", operator.process.last_words()))
    });
    assert!(told.1.contains("/parameters/theme") && !told.1.contains("/domains"), "{told:?}");
}

#[test]
fn an_object_goes_before_its_namespace_and_that_before_the_flag() {
    let Some(world) = World::new("policies") else { return };
    let _operator = world.operator(&["--drift-policy", "enforce"]);
    world.cluster.kubectl(["annotate", "namespace", &world.namespace, "driftline.dev/drift-policy=report"]).succeeded();
    let enforced = world.manifest("enforced", &["b.example.com"], "");
    let enforced = enforced.replace("metadata: {", "metadata: {annotations: {driftline.dev/drift-policy: enforce}, ");
    world.cluster.apply(&enforced);
    world.apply("shop", &["a.example.com"], "");
    for name in ["shop", "enforced"] {
        world.wait_until_settled(name);
    }
    for name in ["shop", "enforced"] {
        world.cloud.meddle(name, DISABLED);
    }
    world.wait("shop", "to be reported", is_drifted);
    world.wait_for_tenant("enforced", "to be put back", |tenant| tenant.text("Enabled") == Some("true"));
    assert_eq!(world.cloud.tenant("shop").unwrap().text("Enabled"), Some("false"));

    // The namespace changes its mind, and nobody touches the object.
    let arguments = ["annotate", "namespace", &world.namespace, "--overwrite", "driftline.dev/drift-policy=enforce"];
    world.cluster.kubectl(arguments).succeeded();
    world.wait_for_tenant("shop", "to be put back", |tenant| tenant.text("Enabled") == Some("true"));
    world.wait_until_settled("shop");

    // A word that is no policy is no policy: nothing is done, and it is said.
    annotate(&world, "driftline.dev/drift-policy=enfroce");
    let object = world.wait("shop", "to be refused", |object| {
        condition(object, "Synced").0 != "True" || condition(object, "Ready").0 != "True"
    });
    assert!(object["status"]["conditions"].to_string().contains("enfroce"), "{:#}", object["status"]);
    world.cloud.forget_calls();
    world.cloud.meddle("shop", DISABLED);
    annotate(&world, "driftline.dev/reconcile-at=again");
    annotate(&world, "driftline.dev/drift-policy=report");
    world.wait("shop", "to be reported", is_drifted);
    assert_eq!(world.cloud.writes().get("UpdateDistributionTenant"), None, "a policy that is not known writes nothing");
}

#[test]
fn what_is_to_be_ignored_is_no_drift_and_is_not_put_back() {
    let Some((world, _operator)) = settled("ignore", "enforce") else { return };
    annotate(
        &world,
        r#"driftline.dev/ignore=[{"path":"/parameters/**","reason":"set by the team"},{"path":"/parameters","reason":"set by the team"}]"#,
    );
    look(&world, 2);
    world.cloud.forget_calls();
    world.cloud.meddle("shop", "<Parameters><member><Name>theme</Name><Value>light</Value></member></Parameters>");
    look(&world, 4);
    assert_eq!(world.cloud.writes(), [].into());
    assert_eq!(condition(&world.object("shop"), "Drifted").0, "False");
    // The rest of it is looked after.
    world.cloud.meddle("shop", DISABLED);
    world.wait_for_tenant("shop", "to be put back", |tenant| tenant.text("Enabled") == Some("true"));
}
