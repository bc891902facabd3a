//! Ways to run the operator: without writing, in pairs, with a store; and the kind for any type of resource.

use serde_json::{Value as Json, json};

use super::process::eventually;
use super::world::{World, condition, is_settled};
use crate::support::Sandbox;

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let Some(world) = World::new("dry") else { return };
    world.apply("shop", &["a.example.com"], "");
    let plan = world.run(&["operator", "--dry-run", "--namespace", &world.namespace]).succeeded();
    plan.prints(&["shop", "1 object", "nothing was written"]);
    assert_eq!(world.cloud.writes(), [].into());
    let object = world.object("shop");
    assert_eq!((object.get("status"), object["metadata"].get("finalizers")), (None, None), "{object:#}");

    let operator = world.operator(&[]);
    world.wait_until_settled("shop");
    drop(operator);
    world.cloud.meddle("shop", "<Enabled>false</Enabled>");
    let plan = world.run(&["-o", "json", "operator", "--dry-run", "--namespace", &world.namespace]).succeeded().json();
    assert!(plan.to_string().contains(r#""path":"/enabled""#), "{plan:#}");
    assert_eq!(world.cloud.tenant("shop").unwrap().text("Enabled"), Some("false"));
}

#[test]
fn of_two_operators_one_works_and_the_other_takes_over() {
    let Some(world) = World::new("pair") else { return };
    let election = ["--leader-election", "--lease-name", "driftline", "--lease-namespace", &world.namespace];
    let mut first = world.operator(&election);
    let leads = |operator: &super::world::Operator| operator.metric("driftline_operator_leader") > 0;
    eventually("the first to lead", || if leads(&first) { Ok(()) } else { Err(first.process.last_words()) });
    let second = world.operator(&election);
    world.apply("shop", &["a.example.com"], "");
    world.wait_until_settled("shop");
    assert!(!leads(&second));
    assert_eq!(second.metric("driftline_operator_aws_writes_total"), 0);
    first.process.kill();
    world.apply("shop", &["b.example.com"], "");
    world.wait_until_settled("shop");
    assert!(leads(&second));
    assert_eq!(world.cloud.writes()["CreateDistributionTenant"], 1);
}

#[test]
fn what_the_operator_saw_is_history() {
    let Some(world) = World::new("history") else { return };
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    let operator = world.operator(&["--drift-policy", "report", "--store", store.to_str().unwrap()]);
    world.apply("shop", &["a.example.com"], "");
    world.wait_until_settled("shop");
    let id = world.object("shop")["status"]["arn"].as_str().unwrap().to_owned();
    // One version is made in each interval: it must have the tenant as it was before somebody meddles with it.
    eventually("the tenant in the store", || {
        let history = sandbox.run(["history", &id]);
        if history.code == 0 && history.out.contains("first seen") {
            Ok(())
        } else {
            Err(format!("{history:?}\n{}", operator.process.last_words()))
        }
    });
    world.cloud.meddle("shop", "<Enabled>false</Enabled>");
    world.wait("shop", "to be drifted", |object| condition(object, "Drifted").0 == "True");
    eventually("the change in the store", || {
        let history = sandbox.run(["history", &id]);
        if history.code == 0 && history.out.contains("changed") { Ok(()) } else { Err(format!("{history:?}")) }
    });
}

fn queue(world: &World<'_>, timeout: u32, more: &str) -> String {
    format!(
        "apiVersion: driftline.dev/v1alpha1\nkind: AwsResource\nmetadata: {{name: orders, namespace: {}}}\nspec:\n  \
         typeName: AWS::SQS::Queue\n  properties: {{QueueName: orders, VisibilityTimeout: {timeout}}}\n{more}",
        world.namespace
    )
}

fn visibility(world: &World<'_>) -> Option<Json> {
    let object = resource(world)?;
    let id = object["status"]["id"].as_str()?.to_owned();
    world.cloud.control("GetResource", &json!({"TypeName": "AWS::SQS::Queue", "Identifier": id})).map(|reply| {
        let text = reply["ResourceDescription"]["Properties"].as_str().unwrap().to_owned();
        serde_json::from_str::<Json>(&text).unwrap()["VisibilityTimeout"].clone()
    })
}

fn resource(world: &World<'_>) -> Option<Json> {
    let path = format!("/apis/driftline.dev/v1alpha1/namespaces/{}/awsresources/orders", world.namespace);
    world.cluster.fetch(&path).ok().map(|text| serde_json::from_str(&text).unwrap())
}

#[test]
fn any_type_of_resource_is_looked_after_through_cloud_control() {
    let Some(world) = World::new("control") else { return };
    let operator = world.operator(&[]);
    let settled = || {
        eventually("the resource to be settled", || match resource(&world) {
            Some(object) if is_settled(&object) => Ok(object),
            object => Err(format!("{object:#?}\n{}", operator.process.last_words())),
        })
    };
    world.cluster.apply(&queue(&world, 60, ""));
    let object = settled();
    assert_eq!(visibility(&world), Some(json!(60)));
    world.cluster.apply(&queue(&world, 90, ""));
    settled();
    assert_eq!(visibility(&world), Some(json!(90)));

    let patch = json!([{"op": "replace", "path": "/VisibilityTimeout", "value": 5}]).to_string();
    let id = &object["status"]["id"];
    let update = json!({"TypeName": "AWS::SQS::Queue", "Identifier": id, "PatchDocument": patch});
    world.cloud.control("UpdateResource", &update).unwrap();
    eventually("the queue to be put back", || match visibility(&world) {
        Some(timeout) if timeout == 90 => Ok(()),
        other => Err(format!("{other:?}\n{}", operator.process.last_words())),
    });
    settled();
    world.cluster.kubectl(["delete", "awsresource", "orders", "-n", &world.namespace, "--wait=false"]).succeeded();
    eventually("the resource to be gone", || match resource(&world) {
        None => Ok(()),
        Some(object) => Err(format!("{object:#}")),
    });
    assert_eq!(world.cloud.control("GetResource", &json!({"TypeName": "AWS::SQS::Queue", "Identifier": id})), None);
}
