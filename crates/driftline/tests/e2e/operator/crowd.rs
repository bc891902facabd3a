//! Many objects at once.

use std::fs;
use std::io::Write;

use super::process::eventually;
use super::world::{Operator, World, is_settled};

fn create(world: &World<'_>, count: usize) {
    let all: Vec<String> =
        (0..count).map(|at| world.manifest(&format!("tenant-{at}"), &[&format!("t{at}.example.com")], "")).collect();
    world.cluster.kubectl_with(&all.join("---\n"), &["create"]).succeeded();
}

fn wait_until_all_settled(world: &World<'_>, operator: &Operator, count: usize) {
    eventually("all objects to be settled", || {
        let settled = world.objects().iter().filter(|object| is_settled(object)).count();
        if settled == count { Ok(()) } else { Err(format!("{settled} are\n{}", operator.process.last_words())) }
    });
}

#[test]
fn three_hundred_objects_take_three_reconciles_each_and_then_nothing_is_written() {
    const COUNT: usize = 300;
    let Some(world) = World::new("crowd") else { return };
    let operator = world.operator(&["--resync", "10m"]);
    create(&world, COUNT);
    wait_until_all_settled(&world, &operator, COUNT);
    let writes = world.cloud.writes();
    assert_eq!(writes["CreateDistributionTenant"], COUNT as u64, "{writes:?}");
    assert_eq!(writes.len(), 1, "{writes:?}");
    let reconciles = operator.metric("driftline_operator_reconciles_total");
    assert!((COUNT as u64..=3 * COUNT as u64).contains(&reconciles), "{reconciles}: {:#?}", operator.metrics());
    drop(operator);
    // Another one takes over, and looks often.
    let operator = world.operator(&["--resync", "2s"]);
    let versions = || -> Vec<String> {
        world.objects().iter().map(|object| object["metadata"]["resourceVersion"].to_string()).collect()
    };
    let before = versions();
    world.cloud.forget_calls();
    eventually("ten more looks at each", || match world.cloud.calls().get("GetDistributionTenant") {
        Some(looks) if *looks >= 10 * COUNT as u64 => Ok(()),
        looks => Err(format!("{looks:?}")),
    });
    assert_eq!(world.cloud.writes(), [].into());
    assert_eq!(versions(), before);
    assert_eq!(operator.metric("driftline_operator_kubernetes_writes_total"), 0, "{:#?}", operator.metrics());
    assert_eq!(operator.metric("driftline_operator_aws_writes_total"), 0, "{:#?}", operator.metrics());

    // One of them drifts, and that one is put back.
    world.cloud.meddle("tenant-7", "<Enabled>false</Enabled>");
    world.wait_for_tenant("tenant-7", "to be put back", |tenant| tenant.text("Enabled") == Some("true"));
    assert_eq!(world.cloud.writes()["UpdateDistributionTenant"], 1);
}

/// Too slow for every run: `cargo test -p driftline --test e2e -- --ignored a_thousand`.
#[test]
#[ignore = "takes minutes; run by hand when the operator's memory may have changed"]
fn a_thousand_objects_fit_into_eighty_megabytes() {
    const COUNT: usize = 1000;
    let Some(world) = World::new("thousand") else { return };
    let operator = world.operator(&["--resync", "30s"]);
    create(&world, COUNT);
    wait_until_all_settled(&world, &operator, COUNT);
    let kilobytes = memory(&operator);
    let _ = writeln!(std::io::stderr(), "{COUNT} objects: {kilobytes} kB at most");
    assert!(kilobytes <= 80 * 1024, "{kilobytes} kB");
}

/// What the operator has in memory, in kB.
fn memory(operator: &Operator) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", operator.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
