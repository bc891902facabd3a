//! A namespace, an account of AWS, and the operator between them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;
use tempfile::TempDir;

use super::cloud::{Cloud, Tenant};
use super::cluster::{Cluster, shared};
use super::http;
use super::process::{Process, eventually, free_port};
use crate::support::{PROGRAM, Ran, ran, variable};

/// Where one test lives.
pub(crate) struct World<'c> {
    pub cluster: &'c Cluster,
    pub namespace: String,
    pub cloud: Cloud,
    folder: TempDir,
}

/// How often the operators of tests look, unless told otherwise: often enough not to wait for.
pub(crate) const RESYNC: &str = "1s";

impl World<'static> {
    /// In the cluster that all tests share, if there is one here.
    pub(crate) fn new(about: &str) -> Option<Self> {
        World::on(shared()?, about)
    }
}

impl<'c> World<'c> {
    pub(crate) fn on(cluster: &'c Cluster, about: &str) -> Option<Self> {
        let cloud = Cloud::new()?;
        cluster.define_kinds();
        let folder = TempDir::with_prefix("driftline-operator-").unwrap();
        Some(Self { cluster, namespace: cluster.namespace(about), cloud, folder })
    }

    /// Starts the operator for this namespace, and waits until it says that it is ready.
    pub(crate) fn operator(&self, arguments: &[&str]) -> Operator {
        let operator = self.operator_as(self.cluster.kubeconfig(), arguments);
        operator.wait_until_ready();
        operator
    }

    /// Runs the program once, with everything that the operator is given.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.folder.path()).args(arguments).env_clear();
        command.env("PATH", variable("PATH").unwrap_or_default()).env("HOME", self.folder.path());
        command.env("KUBECONFIG", self.cluster.kubeconfig()).envs(self.cloud.environment());
        ran(&command.output().unwrap())
    }

    pub(crate) fn operator_as(&self, kubeconfig: PathBuf, arguments: &[&str]) -> Operator {
        let port = free_port();
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.folder.path()).args(["operator", "--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--namespace", &self.namespace]);
        if !arguments.contains(&"--resync") {
            command.args(["--resync", RESYNC]);
        }
        command.args(arguments);
        command.env("PATH", variable("PATH").unwrap_or_default()).env("HOME", self.folder.path());
        command.env("KUBECONFIG", kubeconfig).envs(self.cloud.environment());
        let log = self.folder.path().join(format!("operator-{port}.log"));
        Operator { port, process: Process::start(&command, &log, None) }
    }

    /// Everything but the cluster, while that is being restarted.
    pub(crate) fn leave(self) -> (String, Cloud, TempDir) {
        (self.namespace, self.cloud, self.folder)
    }

    pub(crate) fn enter(cluster: &'c Cluster, (namespace, cloud, folder): (String, Cloud, TempDir)) -> Self {
        Self { cluster, namespace, cloud, folder }
    }

    /// A tenant as a user writes it.
    pub(crate) fn manifest(&self, name: &str, domains: &[&str], more: &str) -> String {
        let domains: Vec<String> = domains.iter().map(|domain| format!("{{domain: {domain}}}")).collect();
        format!(
            "apiVersion: driftline.dev/v1alpha1\nkind: DistributionTenant\nmetadata: {{name: {name}, namespace: {}}}\n\
             spec:\n  distributionId: {}\n  domains: [{}]\n{more}",
            self.namespace,
            self.cloud.distribution,
            domains.join(", ")
        )
    }

    #[track_caller]
    pub(crate) fn apply(&self, name: &str, domains: &[&str], more: &str) {
        self.cluster.apply(&self.manifest(name, domains, more));
    }

    fn path(&self, name: &str) -> String {
        format!("/apis/driftline.dev/v1alpha1/namespaces/{}/distributiontenants/{name}", self.namespace)
    }

    /// The object as it is now.
    #[track_caller]
    pub(crate) fn object(&self, name: &str) -> Json {
        self.cluster.get(&self.path(name))
    }

    pub(crate) fn objects(&self) -> Vec<Json> {
        let list = self.cluster.get(self.path("").trim_end_matches('/'));
        list["items"].as_array().unwrap().clone()
    }

    /// Waits until the object is as it should be.
    #[track_caller]
    pub(crate) fn wait(&self, name: &str, what: &str, holds: impl Fn(&Json) -> bool) -> Json {
        eventually(&format!("{name} {what}"), || {
            let object =
                self.cluster.fetch(&self.path(name)).map(|text| serde_json::from_str::<Json>(&text).unwrap())?;
            if holds(&object) { Ok(object) } else { Err(format!("{:#}", object["status"])) }
        })
    }

    /// Waits until the spec that is there now was acted on, all is well, and says what came of it.
    #[track_caller]
    pub(crate) fn wait_until_settled(&self, name: &str) -> Json {
        self.wait(name, "to be settled", is_settled)
    }

    #[track_caller]
    pub(crate) fn wait_until_gone(&self, name: &str) {
        eventually(&format!("{name} to be gone"), || match self.cluster.fetch(&self.path(name)) {
            Err(error) if error.starts_with("404") => Ok(()),
            Err(error) => Err(error),
            Ok(object) => Err(object),
        });
    }

    /// Waits until AWS has what it should have.
    #[track_caller]
    pub(crate) fn wait_for_tenant(&self, name: &str, what: &str, holds: impl Fn(&Tenant) -> bool) -> Tenant {
        eventually(&format!("the tenant {name} {what}"), || match self.cloud.tenant(name) {
            Some(tenant) if holds(&tenant) => Ok(tenant),
            other => Err(format!("{other:#?}")),
        })
    }

    /// The reasons of the events about an object, with their notes.
    pub(crate) fn events(&self, name: &str) -> Vec<(String, String)> {
        let list = self.cluster.get(&format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.namespace));
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let about = list["items"].as_array().unwrap().iter().filter(|event| event["regarding"]["name"] == name);
        about.map(|event| (text(&event["reason"]), text(&event["note"]))).collect()
    }
}

pub(crate) fn condition<'j>(object: &'j Json, kind: &str) -> (&'j str, &'j str) {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|one| one["type"] == kind);
    found.map_or(("", ""), |one| (one["status"].as_str().unwrap_or(""), one["reason"].as_str().unwrap_or("")))
}

pub(crate) fn is_settled(object: &Json) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && condition(object, "Ready").0 == "True"
        && condition(object, "Synced").0 == "True"
        && condition(object, "Drifted").0 == "False"
}

/// Where the drift of an object is.
pub(crate) fn drift_paths(object: &Json) -> Vec<&str> {
    let fields = object["status"]["drift"]["fields"].as_array();
    fields.into_iter().flatten().filter_map(|field| field["path"].as_str()).collect()
}

/// The operator as a process.
pub(crate) struct Operator {
    port: u16,
    pub process: Process,
}

impl Operator {
    #[track_caller]
    pub(crate) fn wait_until_ready(&self) {
        eventually("the operator to be ready", || {
            http::get(self.port, "/readyz").map_err(|error| format!("{error}\n{}", self.process.last_words()))
        });
    }

    pub(crate) fn get(&self, path: &str) -> Result<String, String> {
        http::get(self.port, path)
    }

    /// Every sample that counts something, by its name with labels.
    pub(crate) fn metrics(&self) -> BTreeMap<String, u64> {
        let text = self.get("/metrics").unwrap();
        let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
        samples.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
    }

    /// The sum of all samples of one name.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let all = self.metrics();
        let of_name = all.iter().filter(|(sample, _)| sample.split('{').next() == Some(name));
        of_name.map(|(_, value)| value).sum()
    }
}
