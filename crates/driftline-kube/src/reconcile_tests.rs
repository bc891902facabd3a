//! Reconciling against a cloud and a cluster in memory.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use driftline_core::Value;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cloud::Fault;
use crate::context::{Context, Fence};
use crate::crd::{DistributionTenant, DistributionTenantSpec, Status};
use crate::decision::Policy;
use crate::memory::{Fate, Memory, World};
use crate::metrics::Metrics;
use crate::reconcile::{Next, reconcile};
use crate::settings::{ADOPT, Defaults, IGNORE, POLICY, RECONCILE_AT};

const SPEC: &str = r#"{"distributionId": "E1", "domains": [{"domain": "a.example.com"}],
    "parameters": [{"name": "who", "value": "acme"}]}"#;

fn tenant() -> DistributionTenant {
    let spec: DistributionTenantSpec = serde_json::from_str(SPEC).unwrap();
    let mut object = DistributionTenant::new("acme", spec);
    object.metadata.namespace = Some("web".into());
    object.metadata.uid = Some("uid-1".into());
    object.metadata.generation = Some(1);
    object.metadata.resource_version = Some("0".into());
    object
}

thread_local! {
    /// Every test has a thread, and so a clock, of its own.
    static NOW: Cell<i64> = const { Cell::new(1_800_000_000) };
}

/// Every look at it is a second later than the one before.
fn clock() -> Timestamp {
    NOW.set(NOW.get() + 1);
    Timestamp::from_second(NOW.get()).unwrap()
}

/// The clock of a process that hours later looks again.
fn much_later() -> Timestamp {
    Timestamp::from_second(1_900_000_000).unwrap()
}

struct Scene {
    memory: Memory,
    policy: Policy,
}

impl Scene {
    fn new(policy: Policy) -> Self {
        let memory = Memory::default();
        memory.0.lock().unwrap().object = Some(tenant());
        Self { memory, policy }
    }

    fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.memory.0.lock().unwrap())
    }

    /// One reconcile by a process that was just started.
    async fn once(&self) -> Option<Duration> {
        self.once_at(clock).await
    }

    async fn once_at(&self, clock: fn() -> Timestamp) -> Option<Duration> {
        let defaults = Defaults { policy: self.policy, resync: Duration::from_mins(5) };
        let metrics = Metrics::default();
        let context = Context::new(&self.memory, &self.memory, metrics, defaults, clock, Fence::open(), None);
        let object = self.world(|world| world.object.clone())?;
        let Next(after) = reconcile(&context, object, &BTreeMap::new()).await;
        after
    }

    /// Until nothing is to be done but to look again some time.
    async fn settle(&self) {
        for _ in 0..20 {
            match self.once().await {
                Some(after) if after < Duration::from_secs(100) => {}
                _ => return,
            }
        }
        panic!("it does not come to rest: {:#?}", self.status());
    }

    fn status(&self) -> Status {
        self.world(|world| world.object.clone()).and_then(|object| object.status).unwrap_or_default()
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let found = self.status().conditions.into_iter().find(|one| one.type_ == kind);
        found.map(|one| (one.status, one.reason)).unwrap_or_default()
    }

    #[track_caller]
    fn assert_condition(&self, kind: &str, truth: &str, reason: &str) {
        assert_eq!(self.condition(kind), (truth.to_owned(), reason.to_owned()), "{kind}: {:#?}", self.status());
    }

    fn events(&self) -> Vec<&'static str> {
        self.world(|world| world.events.iter().map(|note| note.reason).collect())
    }

    fn writes(&self) -> Vec<&'static str> {
        self.world(|world| world.writes.iter().map(|(what, _)| *what).collect())
    }

    /// The user changes the declaration.
    fn edit(&self, change: impl FnOnce(&mut DistributionTenantSpec)) {
        self.touch(|object| {
            change(&mut object.spec);
            object.metadata.generation = object.metadata.generation.map(|number| number + 1);
        });
    }

    fn annotate(&self, name: &str, value: &str) {
        self.touch(|object| {
            object.metadata.annotations.get_or_insert_default().insert(name.into(), value.into());
        });
    }

    fn delete(&self) {
        self.touch(|object| {
            object.metadata.deletion_timestamp = Some(Time(clock()));
            object.metadata.generation = object.metadata.generation.map(|number| number + 1);
        });
    }

    fn touch(&self, change: impl FnOnce(&mut DistributionTenant)) {
        self.world(|world| {
            let object = world.object.as_mut().unwrap();
            change(object);
            let version = object.metadata.resource_version.clone().unwrap();
            object.metadata.resource_version = Some(format!("{version}u"));
        });
    }

    fn drift(&self) {
        self.world(|world| {
            world.meddle("acme", |members| {
                members.insert("enabled".into(), Value::Bool(false));
            });
        });
    }

    fn lose(&self) {
        self.world(|world| {
            world.tenants.clear();
            world.names.clear();
        });
    }

    fn live(&self) -> Value {
        self.world(|world| world.live("acme").map(|thing| thing.document.clone()).unwrap_or_default())
    }
}

#[tokio::test]
async fn a_new_object_is_made_in_one_reconcile_and_then_nothing_is_written_any_more() {
    let scene = Scene::new(Policy::Enforce);
    scene.once().await;
    assert_eq!(scene.writes(), ["create"]);
    scene.assert_condition("Ready", "True", "Deployed");
    scene.assert_condition("Synced", "True", "InSync");
    scene.assert_condition("Drifted", "False", "NoDrift");
    scene.assert_condition("DriftChecked", "True", "Checked");
    let status = scene.status();
    assert_eq!((status.id.as_deref(), status.observed_generation), (Some("dt_1"), Some(1)));
    assert_eq!(status.drift_detected, Some(false));
    let before = scene.world(|world| world.kubernetes_writes);
    for _ in 0..10 {
        scene.once().await;
    }
    assert_eq!(scene.world(|world| world.kubernetes_writes), before, "a check that finds nothing new writes nothing");
    assert_eq!(scene.writes(), ["create"]);
    assert_eq!(scene.events(), ["Created"]);
}

#[tokio::test]
async fn drift_is_told_before_it_is_corrected_and_the_correction_only_after() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    scene.drift();
    scene.once().await;
    assert_eq!(scene.writes(), ["create", "update"]);
    assert_eq!(scene.events(), ["Created", "DriftDetected", "DriftCorrected"]);
    let told = scene.world(|world| world.events[1].text.clone());
    assert!(told.contains("/enabled: true -> false"), "{told}");
    scene.settle().await;
    scene.assert_condition("Synced", "True", "InSync");
    scene.assert_condition("Drifted", "False", "NoDrift");
    assert_eq!(scene.status().drift, None);
}

#[tokio::test]
async fn a_correction_that_fails_is_not_called_one() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    scene.drift();
    // Reading is the first call, telling the status the second, writing to AWS the third.
    scene.world(|world| world.fates.insert(world.calls + 2, Fate::Refused(Fault::AccessDenied)));
    scene.once().await;
    assert_eq!(scene.events(), ["Created", "DriftDetected", "AccessDenied"]);
    scene.assert_condition("Synced", "False", "DriftDetected");
    scene.assert_condition("Ready", "False", "AccessDenied");
    assert_eq!(scene.status().drift.unwrap().fields[0].path, "/enabled");
    scene.settle().await;
    assert_eq!(scene.events()[3..], ["DriftCorrected"], "what was told is not told twice");
}

#[tokio::test]
async fn under_report_drift_is_told_once_and_nothing_is_written() {
    let scene = Scene::new(Policy::Report);
    scene.settle().await;
    scene.drift();
    scene.once().await;
    let since = scene.status().drift.unwrap().first_detected;
    let writes = scene.world(|world| world.kubernetes_writes);
    for _ in 0..5 {
        scene.once().await;
    }
    assert_eq!(scene.writes(), ["create"]);
    assert_eq!(scene.events(), ["Created", "DriftDetected"]);
    assert_eq!(scene.world(|world| world.kubernetes_writes), writes);
    scene.assert_condition("Synced", "False", "DriftDetected");
    scene.assert_condition("Ready", "True", "Deployed");
    assert_eq!(scene.status().drift.unwrap().first_detected, since);
    scene.annotate(POLICY, "enforce");
    scene.settle().await;
    assert_eq!(scene.writes(), ["create", "update"]);
    assert_eq!(scene.live().get("enabled"), Some(&Value::Bool(true)));
}

#[tokio::test]
async fn suspend_does_not_compare_and_says_so() {
    let scene = Scene::new(Policy::Suspend);
    scene.settle().await;
    scene.assert_condition("Synced", "True", "InSync");
    scene.drift();
    scene.settle().await;
    assert_eq!(scene.writes(), ["create"]);
    scene.assert_condition("Synced", "True", "InSync");
    scene.assert_condition("DriftChecked", "False", "Suspended");
    scene.assert_condition("Drifted", "Unknown", "Suspended");
    assert_eq!(scene.status().drift_detected, Some(true));
    assert_eq!(scene.status().drift, None);
    scene.annotate(POLICY, "report");
    scene.settle().await;
    scene.assert_condition("Synced", "False", "DriftDetected");
    assert_eq!(scene.status().drift.unwrap().fields[0].path, "/enabled");
}

#[tokio::test]
async fn a_change_over_drift_names_what_it_overwrites_under_every_policy_that_looks() {
    for policy in [Policy::Enforce, Policy::Report] {
        let scene = Scene::new(policy);
        scene.settle().await;
        scene.drift();
        scene.edit(|spec| spec.parameters[0].value = "other".into());
        scene.settle().await;
        assert_eq!(scene.events(), ["Created", "DriftOverwritten", "Updated"], "{policy}");
        let told = scene.world(|world| world.events[1].text.clone());
        assert!(told.contains("/enabled: true -> false") && !told.contains("/parameters"), "{told}");
        let overwritten = scene.status().overwritten.unwrap();
        assert_eq!(overwritten.fields[0].path, "/enabled");
        assert_eq!(scene.live().get("enabled"), Some(&Value::Bool(true)));
        scene.assert_condition("Synced", "True", "InSync");
    }
}

#[tokio::test]
async fn a_change_that_means_the_same_is_acknowledged_and_not_written() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    scene.edit(|spec| spec.domains.push(crate::crd::Domain { domain: "A.EXAMPLE.com".into() }));
    scene.settle().await;
    assert_eq!(scene.writes(), ["create"]);
    assert_eq!(scene.status().observed_generation, Some(2));
}

#[tokio::test]
async fn removing_a_field_from_the_declaration_converges() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    scene.edit(|spec| spec.parameters.clear());
    scene.settle().await;
    assert_eq!(scene.writes(), ["create", "update"]);
    assert_eq!(scene.live().get("parameters"), Some(&Value::Object(BTreeMap::new())));
}

#[tokio::test]
async fn what_someone_deleted_is_made_again_reported_or_ignored() {
    for (policy, writes, event) in [
        (Policy::Enforce, vec!["create", "create"], Some("ExternalDeletion")),
        (Policy::Report, vec!["create"], Some("ExternalDeletion")),
        (Policy::Suspend, vec!["create"], None),
    ] {
        let scene = Scene::new(policy);
        scene.settle().await;
        scene.lose();
        scene.settle().await;
        scene.settle().await;
        assert_eq!(scene.writes(), writes, "{policy}");
        assert_eq!(scene.events().get(1).copied(), event, "{policy}");
        if policy == Policy::Report {
            scene.assert_condition("Drifted", "True", "ExternalDeletion");
            scene.assert_condition("Synced", "False", "DriftDetected");
        }
    }
}

#[tokio::test]
async fn deleting_switches_off_waits_and_deletes_before_the_object_goes() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    scene.world(|world| world.slow = 3);
    scene.delete();
    scene.once().await;
    assert_eq!(scene.writes(), ["create", "disable"]);
    scene.once().await;
    assert!(scene.world(|world| world.object.is_some()), "it is not gone while AWS is working");
    scene.settle().await;
    assert_eq!(scene.writes(), ["create", "disable", "delete"]);
    assert!(scene.world(|world| world.object.is_none() && world.tenants.is_empty()));
    let switched_off = scene.world(|world| world.writes[1].1.clone());
    assert!(switched_off.get("parameters").unwrap().get("who").is_some(), "switching off changes nothing else");
}

#[tokio::test]
async fn a_correction_that_does_not_stick_is_not_tried_in_a_circle() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    scene.world(|world| world.stubborn = vec!["enabled"]);
    scene.drift();
    for _ in 0..20 {
        scene.once().await;
    }
    assert_eq!(scene.writes(), ["create", "update"], "{:#?}", scene.status());
    scene.assert_condition("Synced", "False", "CorrectionNotSticking");
    assert!(!scene.events().contains(&"DriftCorrected"));
    scene.annotate(RECONCILE_AT, "now");
    scene.once().await;
    scene.once().await;
    assert_eq!(scene.writes().len(), 3, "who asks for it gets one more");
    scene.once_at(much_later).await;
    assert_eq!(scene.writes().len(), 4, "and after the pause it is tried again");
    assert_eq!(scene.status().corrections.unwrap().attempts, 3);
    scene.world(|world| world.stubborn.clear());
    scene.annotate(RECONCILE_AT, "again");
    scene.settle().await;
    scene.assert_condition("Synced", "True", "InSync");
    assert_eq!(scene.status().corrections, None);
}

#[tokio::test]
async fn an_ignored_field_does_not_count_and_is_not_overwritten() {
    let scene = Scene::new(Policy::Enforce);
    scene.annotate(IGNORE, r#"[{"path":"/enabled","reason":"the night watch switches it off"}]"#);
    scene.settle().await;
    scene.drift();
    scene.settle().await;
    assert_eq!(scene.writes(), ["create"]);
    scene.edit(|spec| spec.parameters[0].value = "other".into());
    scene.settle().await;
    assert_eq!(scene.live().get("enabled"), Some(&Value::Bool(false)), "it stays as it was found");
    scene.assert_condition("Synced", "True", "InSync");
}

#[tokio::test]
async fn throttling_lost_answers_and_changed_etags_are_no_alarm() {
    for fate in [Fate::Refused(Fault::Throttled), Fate::Refused(Fault::Precondition), Fate::Unheard] {
        let scene = Scene::new(Policy::Enforce);
        // The finalizer, the look by name, and the making.
        scene.world(|world| world.fates.insert(2, fate));
        scene.settle().await;
        scene.drift();
        scene.world(|world| world.fates.insert(world.calls + 2, fate));
        scene.settle().await;
        assert_eq!(scene.world(|world| world.tenants.len()), 1, "{fate:?}");
        assert_eq!(scene.live().get("enabled"), Some(&Value::Bool(true)), "{fate:?}");
        assert!(scene.world(|world| world.events.iter().all(|note| !note.warning || note.reason == "DriftDetected")));
        scene.assert_condition("Ready", "True", "Deployed");
    }
}

#[tokio::test]
async fn a_thing_of_that_name_that_is_not_ours_is_left_alone_until_the_object_says_otherwise() {
    let other = Scene::new(Policy::Report);
    other.settle().await;
    other.world(|world| {
        world.tenants.get_mut("dt_1").unwrap().owner = Some("uid-0".into());
        world.object = Some(tenant());
        world.writes.clear();
        world.events.clear();
    });
    other.drift();
    other.once().await;
    other.assert_condition("Ready", "False", "NotOurs");
    assert_eq!(other.writes(), Vec::<&str>::new());
    other.annotate(ADOPT, "dt_1");
    for _ in 0..5 {
        other.settle().await;
    }
    other.assert_condition("Drifted", "True", "DriftDetected");
    assert_eq!(other.writes(), Vec::<&str>::new(), "under report what is taken over is not overwritten");
    assert_eq!(other.world(|world| world.tenants["dt_1"].owner.clone()).as_deref(), Some("uid-1"));
    other.edit(|spec| spec.parameters[0].value = "other".into());
    other.settle().await;
    assert!(other.events().contains(&"DriftOverwritten"), "{:?}", other.events());
    assert_eq!(other.writes(), ["update"]);
    // Deleting the object before it is taken over lets the thing be.
    let stranger = Scene::new(Policy::Enforce);
    stranger.settle().await;
    stranger.world(|world| {
        world.tenants.get_mut("dt_1").unwrap().owner = Some("uid-0".into());
        world.object = Some(tenant());
    });
    stranger.once().await;
    stranger.delete();
    stranger.settle().await;
    assert!(stranger.world(|world| world.object.is_none() && world.tenants.len() == 1));
}

#[tokio::test]
async fn what_is_declared_and_not_acted_on_is_said() {
    let scene = Scene::new(Policy::Enforce);
    scene.edit(|spec| {
        spec.dns = serde_json::from_str(r#"{"provider": "route53", "hostedZoneId": "Z1"}"#).unwrap();
        spec.managed_certificate_request = serde_json::from_str(r#"{"validationTokenHost": "cloudfront"}"#).unwrap();
    });
    scene.world(|world| world.fates.insert(2, Fate::Refused(Fault::Invalid)));
    scene.once().await;
    scene.assert_condition("Ready", "False", "InvalidSpec");
    scene.assert_condition("DNSReady", "Unknown", "NotImplemented");
    scene.settle().await;
    scene.assert_condition("DNSReady", "Unknown", "NotImplemented");
    scene.assert_condition("CertificateReady", "Unknown", "NotFollowed");
    scene.edit(|spec| spec.dns = None);
    scene.settle().await;
    assert_eq!(scene.condition("DNSReady"), Default::default());
}

#[tokio::test]
async fn settings_that_cannot_be_meant_stop_everything_but_deletion() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    scene.annotate(POLICY, "enforec");
    scene.drift();
    scene.once().await;
    scene.assert_condition("Ready", "False", "InvalidSettings");
    scene.assert_condition("DriftChecked", "False", "InvalidSettings");
    assert_eq!(scene.writes(), ["create"]);
    scene.delete();
    scene.settle().await;
    assert!(scene.world(|world| world.object.is_none() && world.tenants.is_empty()));
}

/// The life of an object: made, drifted, corrected, changed over drift, lost, made again, deleted.
async fn live_through(scene: &Scene) {
    scene.settle().await;
    scene.drift();
    scene.settle().await;
    scene.drift();
    scene.edit(|spec| spec.parameters[0].value = "other".into());
    scene.settle().await;
    scene.lose();
    scene.settle().await;
    scene.delete();
    scene.settle().await;
}

#[tokio::test]
async fn killed_between_any_two_calls_it_neither_orphans_nor_writes_anything_but_the_declaration() {
    let whole = Scene::new(Policy::Enforce);
    live_through(&whole).await;
    let calls = whole.world(|world| world.calls);
    assert!(calls > 20, "{calls}");
    for at in 0..calls {
        for after in [false, true] {
            let scene = Scene::new(Policy::Enforce);
            scene.world(|world| world.kill = Some((at, after)));
            // Whoever starts it again finds what the dead one left.
            let revive = || {
                scene.world(|world| {
                    if world.killed {
                        world.killed = false;
                        world.kill = None;
                    }
                });
            };
            scene.settle_killed(&revive).await;
            scene.drift();
            scene.settle_killed(&revive).await;
            scene.drift();
            scene.edit(|spec| spec.parameters[0].value = "other".into());
            scene.settle_killed(&revive).await;
            assert_eq!(scene.world(|world| world.tenants.len()), 1, "killed at {at}, after: {after}");
            scene.lose();
            scene.settle_killed(&revive).await;
            assert_eq!(scene.world(|world| world.tenants.len()), 1, "killed at {at}, after: {after}");
            scene.assert_condition("Synced", "True", "InSync");
            let declared = |value: &Value| {
                let who = value.get("parameters").and_then(|them| them.get("who")).and_then(Value::as_str);
                value.get("enabled") == Some(&Value::Bool(true)) && matches!(who, Some("acme" | "other"))
            };
            scene.world(|world| {
                for (what, document) in &world.writes {
                    assert!(declared(document), "{what} wrote {document:?}, killed at {at}");
                }
                // Once the new declaration was written the old one never is again.
                let who = |value: &Value| value.get("parameters").and_then(|them| them.get("who")).cloned();
                let values: Vec<_> = world.writes.iter().map(|(_, document)| who(document)).collect();
                assert!(values.is_sorted(), "killed at {at}: {values:?}");
            });
            scene.delete();
            scene.settle_killed(&revive).await;
            assert!(scene.world(|world| world.tenants.is_empty() && world.object.is_none()), "killed at {at}");
        }
    }
}

impl Scene {
    async fn settle_killed(&self, revive: &impl Fn()) {
        for _ in 0..40 {
            let after = self.once().await;
            let was_killed = self.world(|world| world.killed);
            revive();
            if !was_killed && after.is_none_or(|after| after >= Duration::from_secs(100)) {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", self.status());
    }
}

#[tokio::test]
async fn no_second_process_writes_on_what_the_first_has_read() {
    let scene = Scene::new(Policy::Enforce);
    scene.settle().await;
    let stale = scene.world(|world| world.object.clone()).unwrap();
    scene.drift();
    scene.edit(|spec| spec.enabled = false);
    // The cache of this one is behind: it sees drift where the user has declared it meanwhile.
    let defaults = Defaults { policy: Policy::Enforce, resync: Duration::from_mins(5) };
    let context = Context::new(&scene.memory, &scene.memory, Metrics::default(), defaults, clock, Fence::open(), None);
    reconcile(&context, stale, &BTreeMap::new()).await;
    assert_eq!(scene.writes(), ["create"], "the object was not what it was decided on");
    assert_eq!(scene.events(), ["Created"]);
    scene.settle().await;
    assert_eq!(scene.writes(), ["create"]);
    assert_eq!(scene.live().get("enabled"), Some(&Value::Bool(false)));
}

#[tokio::test]
async fn who_does_not_lead_writes_nothing() {
    let scene = Scene::new(Policy::Enforce);
    let defaults = Defaults { policy: Policy::Enforce, resync: Duration::from_mins(5) };
    let fence = Fence::new(|| false);
    let context = Context::new(&scene.memory, &scene.memory, Metrics::default(), defaults, clock, fence, None);
    let object = scene.world(|world| world.object.clone()).unwrap();
    reconcile(&context, object, &BTreeMap::new()).await;
    assert_eq!(scene.world(|world| (world.kubernetes_writes, world.writes.len())), (0, 0));
}
