//! AWS and the cluster as they are on a bad day.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::cluster::{Cluster, programs};
use super::process::eventually;
use super::world::{World, condition};

/// A rule of the proxy for an operation on tenants.
fn on(operation: &str, when: Json, what: Json) -> Json {
    json!({"match": {"service": "cloudfront", "operation": operation}, "when": when, "do": what})
}

#[test]
fn throttling_and_conflicts_are_tried_again_and_raise_no_alarm() {
    let Some(world) = World::new("throttled") else { return };
    world.cloud.rules(json!([
        on("*", json!({"probability": 0.4}), json!({"refuse": "throttle"})),
        on("UpdateDistributionTenant", json!({"calls": [1, 2]}), json!({"refuse": "precondition"})),
    ]));
    let _operator = world.operator(&[]);
    world.apply("shop", &["a.example.com"], "");
    world.wait_until_settled("shop");
    world.apply("shop", &["b.example.com"], "");
    let object = world.wait_until_settled("shop");
    assert_eq!(world.cloud.tenant("shop").unwrap().texts("Domain"), ["b.example.com"]);
    assert!(world.cloud.outcomes("injected") >= 3, "the proxy did its part: {:?}", world.cloud.calls());
    assert_eq!(condition(&object, "Ready").0, "True");
    let alarms: Vec<_> = world.events("shop").into_iter().filter(|(reason, _)| reason.contains("Error")).collect();
    assert_eq!(alarms, []);
}

#[test]
fn a_reply_that_is_lost_neither_doubles_nor_orphans_anything() {
    let Some(world) = World::new("lost") else { return };
    world.cloud.rules(json!([
        on("CreateDistributionTenant", json!({"calls": [1]}), json!("lose_reply")),
        on("UpdateDistributionTenant", json!({"calls": [1]}), json!("lose_reply")),
        on("DeleteDistributionTenant", json!({"calls": [1]}), json!("lose_reply")),
    ]));
    let _operator = world.operator(&[]);
    world.apply("shop", &["a.example.com"], "");
    let object = world.wait_until_settled("shop");
    assert_eq!(world.cloud.tenants(), ["shop"]);
    assert_eq!(object["status"]["id"], world.cloud.tenant("shop").unwrap().id);
    world.apply("shop", &["b.example.com"], "");
    world.wait_until_settled("shop");
    world.cluster.kubectl(["delete", "distributiontenant", "shop", "-n", &world.namespace, "--wait=false"]).succeeded();
    world.wait_until_gone("shop");
    assert_eq!(world.cloud.tenants(), [""; 0]);
}

#[test]
fn what_is_in_progress_is_waited_for() {
    let Some(world) = World::new("progress") else { return };
    world.cloud.rules(json!([on("*DistributionTenant*", json!({}), json!({"in_progress": {"gets": 4}}))]));
    let _operator = world.operator(&[]);
    world.apply("shop", &["a.example.com"], "");
    let busy = world.wait("shop", "to be on its way", |object| object["status"]["tenantStatus"] == "InProgress");
    assert_ne!(condition(&busy, "Ready").0, "True");
    world.wait_until_settled("shop");
    world.cluster.kubectl(["delete", "distributiontenant", "shop", "-n", &world.namespace, "--wait=false"]).succeeded();
    world.wait_until_gone("shop");
    assert_eq!(world.cloud.tenants(), [""; 0]);
}

#[test]
fn aws_may_be_away_for_a_while() {
    let Some(world) = World::new("away") else { return };
    let operator = world.operator(&[]);
    world.apply("shop", &["a.example.com"], "");
    world.wait_until_settled("shop");
    world.cloud.forget_calls();
    world.cloud.rules(json!([on("*", json!({}), json!("unreachable"))]));
    world.apply("shop", &["b.example.com"], "");
    eventually("the operator to find AWS away", || match world.cloud.outcomes("unreachable") {
        3.. => Ok(()),
        count => Err(count.to_string()),
    });
    let object = world.object("shop");
    assert_ne!(condition(&object, "Drifted").0, "True", "what cannot be seen has not drifted");
    operator.get("/healthz").unwrap();
    world.cloud.no_rules();
    world.wait_until_settled("shop");
    assert_eq!(world.cloud.tenant("shop").unwrap().texts("Domain"), ["b.example.com"]);
}

#[test]
fn the_api_server_may_be_restarted() {
    let Some(programs) = programs() else { return };
    let mut cluster = Cluster::start(&programs);
    let Some(world) = World::on(&cluster, "restart") else { return };
    let operator = world.operator(&[]);
    world.apply("shop", &["a.example.com"], "");
    world.wait_until_settled("shop");
    let rest = world.leave();
    cluster.kill_api();
    rest.1.meddle("shop", "<Enabled>false</Enabled>");
    cluster.start_api();
    let world = World::enter(&cluster, rest);
    world.wait_for_tenant("shop", "to be put back", |tenant| tenant.text("Enabled") == Some("true"));
    world.apply("shop", &["b.example.com"], "");
    world.wait_until_settled("shop");
    assert_eq!(world.cloud.tenant("shop").unwrap().texts("Domain"), ["b.example.com"]);
    operator.get("/healthz").unwrap();
}

/// The operator is killed while AWS works on its n-th request, for every n that there is, and then another one takes
/// over. Whatever was half done is finished: nothing twice, nothing left behind.
#[test]
fn an_operator_that_is_killed_at_any_request_leaves_nothing_behind() {
    let Some(world) = World::new("killed") else { return };
    for nth in 1..=7 {
        let name = format!("shop-{nth}");
        let (one, two) = (format!("one-{nth}.example.com"), format!("two-{nth}.example.com"));
        let hold = |nth: u32| json!([on("*", json!({"calls": [nth]}), json!({"slow": {"ms": 60_000}}))]);
        let die_at = |begin: &dyn Fn()| {
            world.cloud.forget_calls();
            world.cloud.rules(hold(nth));
            let mut operator = world.operator(&[]);
            begin();
            eventually("the request to kill at", || {
                let all: u64 = world.cloud.calls().values().sum();
                // A call is counted when it is answered, so the one that is held is not; the one before it is.
                // What is gone is not asked about any more.
                match all + 1 >= u64::from(nth) || world.objects().is_empty() {
                    true => Ok(()),
                    false => Err(format!("{all} calls\n{}", operator.process.last_words())),
                }
            });
            // Sometimes before it is sent, sometimes after it was done.
            std::thread::sleep(Duration::from_millis(u64::from(nth) * 40));
            operator.process.kill();
            world.cloud.no_rules();
        };
        die_at(&|| world.apply(&name, &[&one], ""));
        let operator = world.operator(&[]);
        world.wait_until_settled(&name);
        assert_eq!(world.cloud.tenants(), [name.as_str()]);
        drop(operator);

        die_at(&|| world.apply(&name, &[&two], ""));
        let operator = world.operator(&[]);
        world.wait_until_settled(&name);
        assert_eq!(world.cloud.tenant(&name).unwrap().texts("Domain"), [two.as_str()]);
        drop(operator);

        let delete = ["delete", "distributiontenant", &name, "-n", &world.namespace, "--wait=false"];
        die_at(&|| drop(world.cluster.kubectl(delete).succeeded()));
        let operator = world.operator(&[]);
        world.wait_until_gone(&name);
        assert_eq!(world.cloud.tenants(), [""; 0], "killed at request {nth} while deleting");
        drop(operator);
    }
}
