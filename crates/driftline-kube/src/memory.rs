//! A cloud and a cluster in memory, for tests: they fail in every way that real ones do, and on request between any
//! two calls.

use std::collections::BTreeMap;
use std::sync::Mutex;

use driftline_core::{Change, Value};
use kube::ResourceExt as _;

use crate::cloud::{Cloud, CloudError, CloudResult, Dismantled, Fault, Progress, Thing, Written};
use crate::cluster::{Cluster, ClusterError, Note};
use crate::crd::{DistributionTenant, FINALIZER, Pending, Status};
use crate::decision::Live;
use crate::managed::Managed;
use crate::tenant::member;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is refused with this, and nothing was done.
    Refused(Fault),
    /// It is done, and nobody hears of it.
    Unheard,
}

/// Everything that outlives the operator, and a log of what was done to it.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub tenants: BTreeMap<String, Thing>,
    pub names: BTreeMap<String, String>,
    pub object: Option<DistributionTenant>,
    pub events: Vec<Note>,
    /// The writes to AWS: the operation, and what was written.
    pub writes: Vec<(&'static str, Value)>,
    pub kubernetes_writes: usize,
    made: u64,
    version: u64,
    /// How long a write stays in progress, in reads.
    pub slow: u32,
    settling: BTreeMap<String, u32>,
    /// What becomes of the calls to come, by their number.
    pub fates: BTreeMap<usize, Fate>,
    pub calls: usize,
    /// The operator ends with this call, before or after it is done.
    pub kill: Option<(usize, bool)>,
    pub killed: bool,
    /// Members that AWS does not change, whatever it says.
    pub stubborn: Vec<&'static str>,
}

/// Both sides; cheap to share.
#[derive(Debug, Default)]
pub(crate) struct Memory(pub Mutex<World>);

fn gone() -> CloudError {
    CloudError::new(Fault::Unavailable, "the operator was killed")
}

impl World {
    /// Whether this call is done, and whether its answer is heard.
    fn begin(&mut self) -> CloudResult<bool> {
        let number = self.calls;
        self.calls += 1;
        if self.killed {
            return Err(gone());
        }
        if let Some((at, after)) = self.kill
            && at == number
        {
            self.killed = true;
            return if after { Ok(false) } else { Err(gone()) };
        }
        match self.fates.get(&number) {
            Some(Fate::Refused(fault)) => Err(CloudError::new(*fault, "as the test wants")),
            Some(Fate::Unheard) => Ok(false),
            None => Ok(true),
        }
    }

    fn next_etag(&mut self) -> String {
        self.version += 1;
        format!("etag-{}", self.version)
    }

    fn put(&mut self, id: &str, document: &Value) -> Option<Thing> {
        let etag = self.next_etag();
        let slow = self.slow;
        let stubborn = self.stubborn.clone();
        let thing = self.tenants.get_mut(id)?;
        let mut document = document.clone();
        if let (Value::Object(members), Value::Object(before)) = (&mut document, &thing.document) {
            for name in stubborn {
                members.remove(name);
                members.extend(before.get(name).map(|value| (name.to_owned(), value.clone())));
            }
            if !members.contains_key(member::CONNECTION_GROUP) {
                members.insert(member::CONNECTION_GROUP.into(), Value::from("cg_default"));
            }
        }
        thing.document = document;
        thing.etag = Some(etag);
        if slow > 0 {
            thing.live = Live::InProgress;
            self.settling.insert(id.to_owned(), slow);
        }
        self.tenants.get(id).cloned()
    }

    /// Someone else changes a tenant.
    pub(crate) fn meddle(&mut self, name: &str, change: impl FnOnce(&mut BTreeMap<String, Value>)) {
        let id = self.names[name].clone();
        let etag = self.next_etag();
        if let Some(thing) = self.tenants.get_mut(&id) {
            thing.etag = Some(etag);
            if let Value::Object(members) = &mut thing.document {
                change(members);
            }
        }
    }

    pub(crate) fn live(&self, name: &str) -> Option<&Thing> {
        self.tenants.get(self.names.get(name)?)
    }

    fn read(&mut self, id: &str) -> Option<Thing> {
        let found = self.tenants.get(id)?.clone();
        if let Some(left) = self.settling.get_mut(id) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.settling.remove(id);
                if let Some(thing) = self.tenants.get_mut(id) {
                    thing.live = Live::Present;
                }
            }
        }
        Some(found)
    }
}

fn heard<T>(heard: bool, answer: T) -> CloudResult<T> {
    if heard { Ok(answer) } else { Err(CloudError::new(Fault::Unavailable, "the answer was lost")) }
}

impl Cloud<DistributionTenant> for &Memory {
    async fn find(&self, object: &DistributionTenant) -> CloudResult<Option<Thing>> {
        let mut world = self.0.lock().expect("no test breaks it");
        let ok = world.begin()?;
        let id = world.names.get(&object.name_any()).cloned();
        let found = id.and_then(|id| world.read(&id));
        heard(ok, found)
    }

    async fn read(&self, _: &DistributionTenant, id: &str) -> CloudResult<Option<Thing>> {
        let mut world = self.0.lock().expect("no test breaks it");
        let ok = world.begin()?;
        let found = world.read(id);
        heard(ok, found)
    }

    fn intent(&self, _: &DistributionTenant, _: &str) -> Option<Pending> {
        None
    }

    async fn create(&self, object: &DistributionTenant, _: Option<&Pending>, document: &Value) -> CloudResult<Written> {
        let mut world = self.0.lock().expect("no test breaks it");
        let ok = world.begin()?;
        if world.names.contains_key(&object.name_any()) {
            return Err(CloudError::new(Fault::Conflict, "a tenant with this name already exists"));
        }
        world.made += 1;
        let id = format!("dt_{}", world.made);
        let etag = world.next_etag();
        let thing = Thing {
            arn: Some(format!("arn:aws:cloudfront::1:distribution-tenant/{id}")),
            id: id.clone(),
            etag: Some(etag),
            live: Live::Present,
            state: None,
            owner: object.uid(),
            document: document.clone(),
        };
        world.tenants.insert(id.clone(), thing);
        world.names.insert(object.name_any(), id.clone());
        world.writes.push(("create", document.clone()));
        let thing = world.put(&id, document).ok_or_else(gone)?;
        heard(ok, Written::Done(Box::new(thing)))
    }

    async fn update(
        &self,
        _: &DistributionTenant,
        thing: &Thing,
        document: &Value,
        _: &[Change],
    ) -> CloudResult<Written> {
        let mut world = self.0.lock().expect("no test breaks it");
        let ok = world.begin()?;
        let Some(now) = world.tenants.get(&thing.id) else {
            return Err(CloudError::new(Fault::NotFound, "there is no such tenant"));
        };
        if now.etag != thing.etag {
            return Err(CloudError::new(Fault::Precondition, "the ETag is another one"));
        }
        world.writes.push(("update", document.clone()));
        let thing = world.put(&thing.id, document).ok_or_else(gone)?;
        heard(ok, Written::Done(Box::new(thing)))
    }

    async fn claim(&self, object: &DistributionTenant, thing: &Thing) -> CloudResult<()> {
        let mut world = self.0.lock().expect("no test breaks it");
        let ok = world.begin()?;
        if let Some(found) = world.tenants.get_mut(&thing.id) {
            found.owner = object.uid();
        }
        heard(ok, ())
    }

    async fn dismantle(&self, _: &DistributionTenant, thing: &Thing) -> CloudResult<Dismantled> {
        let mut world = self.0.lock().expect("no test breaks it");
        let ok = world.begin()?;
        let Some(now) = world.tenants.get(&thing.id).cloned() else { return heard(ok, Dismantled::Deleted) };
        if now.etag != thing.etag {
            return Err(CloudError::new(Fault::Precondition, "the ETag is another one"));
        }
        if now.document.get(member::ENABLED) == Some(&Value::Bool(true)) {
            let mut document = now.document.clone();
            if let Value::Object(members) = &mut document {
                members.insert(member::ENABLED.into(), Value::Bool(false));
            }
            world.writes.push(("disable", document.clone()));
            let thing = world.put(&thing.id, &document).ok_or_else(gone)?;
            return heard(ok, Dismantled::Disabled(Box::new(thing)));
        }
        if now.live == Live::InProgress {
            return Err(CloudError::new(Fault::Conflict, "it is not switched off everywhere"));
        }
        world.writes.push(("delete", Value::Null));
        world.tenants.remove(&thing.id);
        world.names.retain(|_, id| *id != thing.id);
        heard(ok, Dismantled::Deleted)
    }

    async fn poll(&self, _: &DistributionTenant, _: &Pending, _: Option<&Value>) -> CloudResult<Progress> {
        Ok(Progress::Done(None))
    }
}

impl Memory {
    /// Writes the object as an API server would: on the condition that it is as it was read.
    fn write(
        &self,
        object: &DistributionTenant,
        change: impl FnOnce(&mut DistributionTenant),
    ) -> Result<DistributionTenant, ClusterError> {
        let mut world = self.0.lock().expect("no test breaks it");
        let ok = world.begin().map_err(|error| ClusterError::Other(error.message))?;
        let Some(mut stored) = world.object.clone() else { return Err(ClusterError::Gone) };
        if stored.metadata.resource_version != object.metadata.resource_version {
            return Err(ClusterError::Conflict);
        }
        change(&mut stored);
        world.version += 1;
        world.kubernetes_writes += 1;
        stored.metadata.resource_version = Some(world.version.to_string());
        let ended = stored.metadata.deletion_timestamp.is_some() && stored.finalizers().is_empty();
        world.object = (!ended).then(|| stored.clone());
        if ok { Ok(stored) } else { Err(ClusterError::Other("the answer was lost".into())) }
    }
}

impl Cluster<DistributionTenant> for &Memory {
    async fn add_finalizer(&self, object: &DistributionTenant) -> Result<DistributionTenant, ClusterError> {
        self.write(object, |stored| stored.finalizers_mut().push(FINALIZER.into()))
    }

    async fn remove_finalizer(&self, object: &DistributionTenant) -> Result<(), ClusterError> {
        self.write(object, |stored| stored.finalizers_mut().retain(|one| one != FINALIZER)).map(|_| ())
    }

    async fn write_status(
        &self,
        object: &DistributionTenant,
        status: &Status,
    ) -> Result<DistributionTenant, ClusterError> {
        self.write(object, |stored| stored.set_status(status.clone()))
    }

    async fn tell(&self, _: &DistributionTenant, note: Note) {
        let mut world = self.0.lock().expect("no test breaks it");
        if !world.killed {
            world.events.push(note);
        }
    }
}
