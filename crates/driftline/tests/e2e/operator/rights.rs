//! The operator with exactly the rights that the chart gives it.

use super::cluster::LIMITED_USER;
use super::packaging::rendered;
use super::process::eventually;
use super::world::World;

/// The chart's objects of these kinds, with the operator's user in place of its service account.
fn roles(values: &[&str], namespace: &str) -> Option<String> {
    let objects = rendered(values)?;
    let account = format!("kind: ServiceAccount\n    name: driftline\n    namespace: {namespace}");
    let user = format!("kind: User\n    name: {LIMITED_USER}\n    apiGroup: rbac.authorization.k8s.io");
    let kept =
        objects.split("---\n").filter(|object| object.contains("kind: Role") || object.contains("kind: ClusterRole"));
    let text = kept.collect::<Vec<_>>().join("---\n").replace("driftline-system", namespace).replace(&account, &user);
    assert!(text.contains(LIMITED_USER), "{text}");
    Some(text)
}

/// Creates, corrects, tells and deletes.
fn whole_life(world: &World<'_>, arguments: &[&str]) {
    let operator = world.operator_as(world.cluster.limited_kubeconfig(), arguments);
    operator.wait_until_ready();
    world.apply("shop", &["a.example.com"], "");
    world.wait_until_settled("shop");
    world.cloud.meddle("shop", "<Enabled>false</Enabled>");
    world.wait_for_tenant("shop", "to be put back", |tenant| tenant.text("Enabled") == Some("true"));
    eventually("events", || {
        let events = world.events("shop");
        let told = events.iter().any(|(reason, _)| reason == "DriftCorrected");
        if told { Ok(()) } else { Err(format!("{events:?}\n{}", operator.process.last_words())) }
    });
    world.cluster.kubectl(["delete", "distributiontenant", "shop", "-n", &world.namespace, "--wait=false"]).succeeded();
    world.wait_until_gone("shop");
    let said = operator.process.printed();
    assert!(!said.contains("forbidden"), "{said}");
}

#[test]
fn the_operator_needs_no_more_than_the_chart_gives() {
    let Some(world) = World::new("rights") else { return };
    let namespace = world.namespace.clone();
    let only_here = format!("operator.namespaces={{{namespace}}}");
    let Some(roles) = roles(&[&only_here], &namespace) else { return };
    world.cluster.apply(&roles);
    let lease = ["--leader-election", "--lease-name", "driftline-operator", "--lease-namespace", &namespace];
    whole_life(&world, &lease);
}
