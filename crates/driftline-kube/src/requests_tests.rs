//! Resources whose making, changing and deleting takes time: requests, tokens, and an operator that is killed.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use driftline_core::{Change, Value};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use crate::cloud::{Cloud, CloudError, CloudResult, Dismantled, Fault, Progress, Thing, Written};
use crate::cluster::{Cluster, ClusterError, Note};
use crate::context::{Context, Fence};
use crate::crd::{AwsResource, AwsResourceSpec, FINALIZER, Pending, Status};
use crate::decision::{Live, Policy};
use crate::look::INTENT;
use crate::metrics::Metrics;
use crate::reconcile::{Next, reconcile};
use crate::settings::Defaults;

/// A request that AWS is working on.
#[derive(Clone, Debug)]
struct Request {
    operation: &'static str,
    id: String,
    document: Value,
    /// How many calls it takes until it is done.
    left: u32,
}

/// Both sides, and what happens to them between calls.
#[derive(Debug, Default)]
struct World {
    things: BTreeMap<String, Value>,
    requests: BTreeMap<String, Request>,
    /// The request that a client's token stands for.
    tokens: BTreeMap<String, String>,
    /// The requests that came to their end.
    done: BTreeSet<String>,
    object: Option<AwsResource>,
    version: u64,
    calls: usize,
    kill: Option<(usize, bool)>,
    killed: bool,
}

impl World {
    fn begin(&mut self) -> Result<bool, CloudError> {
        let number = self.calls;
        self.calls += 1;
        self.advance();
        let gone = || CloudError::new(Fault::Unavailable, "the operator was killed");
        if self.killed {
            return Err(gone());
        }
        match self.kill {
            Some((at, after)) if at == number => {
                self.killed = true;
                if after { Ok(false) } else { Err(gone()) }
            }
            _ => Ok(true),
        }
    }

    /// AWS works on, whether anybody asks or not.
    fn advance(&mut self) {
        for (token, request) in &mut self.requests {
            request.left = request.left.saturating_sub(1);
            if request.left == 0 && self.done.insert(token.clone()) {
                match request.operation {
                    "DELETE" => drop(self.things.remove(&request.id)),
                    _ => drop(self.things.insert(request.id.clone(), request.document.clone())),
                }
            }
        }
    }

    fn request(&mut self, operation: &'static str, id: &str, document: &Value) -> String {
        self.version += 1;
        let token = format!("request-{}", self.version);
        let request = Request { operation, id: id.into(), document: document.clone(), left: 4 };
        self.requests.insert(token.clone(), request);
        token
    }

    fn create(&mut self, client: &str, document: &Value) -> String {
        if let Some(token) = self.tokens.get(client) {
            return token.clone();
        }
        self.version += 1;
        let id = format!("id-{}", self.version);
        let token = self.request("CREATE", &id, document);
        self.tokens.insert(client.to_owned(), token.clone());
        token
    }

    fn poll(&self, token: &str) -> Progress {
        let Some(request) = self.requests.get(token) else {
            return Progress::Failed(CloudError::new(Fault::NotFound, "no such request"));
        };
        if self.done.contains(token) {
            return Progress::Done(Some(request.id.clone()));
        }
        Progress::Working(Some(Pending { operation: request.operation.into(), token: token.to_owned() }))
    }

    fn read(&self, id: &str) -> Option<Thing> {
        let document = self.things.get(id)?.clone();
        let (arn, etag, state, owner) = (None, None, None, None);
        Some(Thing { id: id.into(), arn, etag, live: Live::Present, state, owner, document })
    }
}

#[derive(Debug, Default)]
struct Memory(Mutex<World>);

fn heard<T>(heard: bool, answer: T) -> CloudResult<T> {
    if heard { Ok(answer) } else { Err(CloudError::new(Fault::Unavailable, "the answer was lost")) }
}

impl Cloud<AwsResource> for &Memory {
    async fn find(&self, _: &AwsResource) -> CloudResult<Option<Thing>> {
        let ok = self.0.lock().unwrap().begin()?;
        heard(ok, None)
    }

    async fn read(&self, _: &AwsResource, id: &str) -> CloudResult<Option<Thing>> {
        let mut world = self.0.lock().unwrap();
        let ok = world.begin()?;
        heard(ok, world.read(id))
    }

    fn intent(&self, object: &AwsResource, nonce: &str) -> Option<Pending> {
        let token = format!("{INTENT}{}-{nonce}", object.uid().unwrap_or_default());
        Some(Pending { operation: "CREATE".into(), token })
    }

    async fn create(&self, _: &AwsResource, intent: Option<&Pending>, document: &Value) -> CloudResult<Written> {
        let mut world = self.0.lock().unwrap();
        let ok = world.begin()?;
        let token = world.create(&intent.unwrap().token, document);
        heard(ok, Written::Pending(Pending { operation: "CREATE".into(), token }))
    }

    async fn update(&self, _: &AwsResource, thing: &Thing, document: &Value, _: &[Change]) -> CloudResult<Written> {
        let mut world = self.0.lock().unwrap();
        let ok = world.begin()?;
        let token = world.request("UPDATE", &thing.id, document);
        heard(ok, Written::Pending(Pending { operation: "UPDATE".into(), token }))
    }

    async fn claim(&self, _: &AwsResource, _: &Thing) -> CloudResult<()> {
        Ok(())
    }

    async fn dismantle(&self, _: &AwsResource, thing: &Thing) -> CloudResult<Dismantled> {
        let mut world = self.0.lock().unwrap();
        let ok = world.begin()?;
        let token = world.request("DELETE", &thing.id, &Value::Null);
        heard(ok, Dismantled::Pending(Pending { operation: "DELETE".into(), token }))
    }

    async fn poll(&self, _: &AwsResource, pending: &Pending, document: Option<&Value>) -> CloudResult<Progress> {
        let mut world = self.0.lock().unwrap();
        let ok = world.begin()?;
        let token = match pending.token.starts_with(INTENT) {
            true => world.create(&pending.token, document.unwrap()),
            false => pending.token.clone(),
        };
        let progress = world.poll(&token);
        heard(ok, progress)
    }
}

impl Memory {
    fn write(&self, object: &AwsResource, change: impl FnOnce(&mut AwsResource)) -> Result<AwsResource, ClusterError> {
        let mut world = self.0.lock().unwrap();
        let ok = world.begin().map_err(|error| ClusterError::Other(error.message))?;
        let Some(mut stored) = world.object.clone() else { return Err(ClusterError::Gone) };
        if stored.metadata.resource_version != object.metadata.resource_version {
            return Err(ClusterError::Conflict);
        }
        change(&mut stored);
        world.version += 1;
        stored.metadata.resource_version = Some(world.version.to_string());
        let ended = stored.metadata.deletion_timestamp.is_some() && stored.finalizers().is_empty();
        world.object = (!ended).then(|| stored.clone());
        if ok { Ok(stored) } else { Err(ClusterError::Other("the answer was lost".into())) }
    }

    fn touch(&self, change: impl FnOnce(&mut AwsResource)) {
        let mut world = self.0.lock().unwrap();
        world.version += 1;
        let version = world.version.to_string();
        let object = world.object.as_mut().unwrap();
        change(object);
        object.metadata.resource_version = Some(version);
        object.metadata.generation = object.metadata.generation.map(|number| number + 1);
    }
}

impl Cluster<AwsResource> for &Memory {
    async fn add_finalizer(&self, object: &AwsResource) -> Result<AwsResource, ClusterError> {
        self.write(object, |stored| stored.finalizers_mut().push(FINALIZER.into()))
    }

    async fn remove_finalizer(&self, object: &AwsResource) -> Result<(), ClusterError> {
        self.write(object, |stored| stored.finalizers_mut().retain(|one| one != FINALIZER)).map(|_| ())
    }

    async fn write_status(&self, object: &AwsResource, status: &Status) -> Result<AwsResource, ClusterError> {
        self.write(object, |stored| stored.status = Some(status.clone()))
    }

    async fn tell(&self, _: &AwsResource, _: Note) {}
}

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_800_000_000) };
}

fn clock() -> Timestamp {
    NOW.set(NOW.get() + 1);
    Timestamp::from_second(NOW.get()).unwrap()
}

/// Until there is nothing to do but to look again some time; a process that was killed is started again.
async fn settle(memory: &Memory) {
    for _ in 0..60 {
        let Some(object) = memory.0.lock().unwrap().object.clone() else { return };
        let defaults = Defaults { policy: Policy::Enforce, resync: Duration::from_mins(5) };
        let context = Context::new(memory, memory, Metrics::default(), defaults, clock, Fence::open(), None);
        let Next(after) = reconcile(&context, object, &BTreeMap::new()).await;
        let mut world = memory.0.lock().unwrap();
        let killed = std::mem::take(&mut world.killed);
        if killed {
            world.kill = None;
        } else if after.is_none_or(|after| after > Duration::from_secs(100)) {
            return;
        }
    }
    panic!("it does not come to rest: {:#?}", memory.0.lock().unwrap());
}

fn queue() -> AwsResource {
    let properties = serde_json::json!({"QueueName": "q", "VisibilityTimeout": 60});
    let spec = AwsResourceSpec {
        type_name: "AWS::SQS::Queue".into(),
        properties: properties.as_object().unwrap().clone(),
        region: None,
        drift_policy: None,
        ignore: Vec::new(),
    };
    let mut object = AwsResource::new("q", spec);
    object.metadata.namespace = Some("web".into());
    object.metadata.uid = Some("0e3a3f52-9a54-4c9f-8d0e-0d8c4f5b6a71".into());
    object.metadata.generation = Some(1);
    object.metadata.resource_version = Some("0".into());
    object
}

async fn live_through(kill: Option<(usize, bool)>) -> usize {
    let memory = Memory::default();
    {
        let mut world = memory.0.lock().unwrap();
        world.object = Some(queue());
        world.kill = kill;
    }
    let only = |what: &str, timeout: i64| {
        let world = memory.0.lock().unwrap();
        let timeouts: Vec<_> = world.things.values().map(|one| one.get("VisibilityTimeout").cloned()).collect();
        assert_eq!(timeouts, [Some(Value::from(timeout))], "{what}, killed at {kill:?}");
        let status = world.object.as_ref().unwrap().status.clone().unwrap();
        assert_eq!((status.pending, status.drift), (None, None), "{what}, killed at {kill:?}");
        assert_eq!(status.id, world.things.keys().next().cloned());
    };
    settle(&memory).await;
    only("made", 60);
    for value in memory.0.lock().unwrap().things.values_mut() {
        if let Value::Object(members) = value {
            members.insert("VisibilityTimeout".into(), Value::from(5i64));
        }
    }
    settle(&memory).await;
    only("corrected", 60);
    memory.touch(|object| drop(object.spec.properties.insert("VisibilityTimeout".into(), 90.into())));
    settle(&memory).await;
    only("changed", 90);
    memory.0.lock().unwrap().things.clear();
    settle(&memory).await;
    only("made again", 90);
    memory.touch(|object| object.metadata.deletion_timestamp = Some(Time(clock())));
    settle(&memory).await;
    let mut world = memory.0.lock().unwrap();
    (0..10).for_each(|_| world.advance());
    assert!(world.object.is_none() && world.things.is_empty(), "killed at {kill:?}: {world:#?}");
    world.calls
}

#[tokio::test]
async fn killed_between_any_two_calls_no_request_is_lost_and_none_is_made_twice() {
    let calls = live_through(None).await;
    assert!(calls > 40, "{calls}");
    for at in 0..calls {
        for after in [false, true] {
            live_through(Some((at, after))).await;
        }
    }
}

/// Deleted while AWS still makes it, and while nobody knows whether AWS was ever asked.
#[tokio::test]
async fn what_is_deleted_while_it_is_made_is_not_left_behind() {
    for at in 0..8 {
        for after in [false, true] {
            let memory = Memory::default();
            {
                let mut world = memory.0.lock().unwrap();
                world.object = Some(queue());
                world.kill = Some((at, after));
            }
            let object = memory.0.lock().unwrap().object.clone().unwrap();
            let defaults = Defaults { policy: Policy::Enforce, resync: Duration::from_mins(5) };
            let context = Context::new(&memory, &memory, Metrics::default(), defaults, clock, Fence::open(), None);
            reconcile(&context, object, &BTreeMap::new()).await;
            {
                let mut world = memory.0.lock().unwrap();
                world.killed = false;
                world.kill = None;
                if world.object.as_ref().unwrap().finalizers().is_empty() {
                    assert!(world.requests.is_empty(), "nothing is made before the finalizer is there");
                    continue;
                }
            }
            memory.touch(|object| object.metadata.deletion_timestamp = Some(Time(clock())));
            settle(&memory).await;
            let mut world = memory.0.lock().unwrap();
            (0..10).for_each(|_| world.advance());
            assert!(world.object.is_none() && world.things.is_empty(), "killed at {at}, {after}: {world:#?}");
        }
    }
}
