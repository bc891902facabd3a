//! kubernetes: the objects of a cluster, as its API and `kubectl get -o json|yaml` write them.
//!
//! An object is kept as it was seen; what the API server and controllers write into it by themselves is for rules to
//! excuse. A list does not say what it was asked for (a namespace, a label), so what it covers is told beside it.

use std::collections::BTreeSet;

use driftline_core::key::NOWHERE;
use driftline_core::{Coverage, Extent, Outcome, Pattern, ResourceKey, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::normalize::{Context, Document, LONGEST, Listing, NormalizeError, Opened, finish, key, open, text, value};

/// The annotation in which `kubectl apply` keeps a copy of everything that was applied, secrets too.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Kinds that are not listed unless asked for: group, kind, why.
pub const LEFT_OUT: &[(&str, &str, &str)] = &[
    ("", "Event", "a log of what happened, kept for an hour"),
    ("events.k8s.io", "Event", "a log of what happened, kept for an hour"),
    ("coordination.k8s.io", "Lease", "its holder renews it every few seconds"),
    ("coordination.k8s.io", "LeaseCandidate", "its holder renews it every few seconds"),
    ("", "Endpoints", "the addresses of running pods; services and pods are listed themselves"),
    ("discovery.k8s.io", "EndpointSlice", "the addresses of running pods; services and pods are listed themselves"),
    ("", "ComponentStatus", "what the API server thinks of others right now; deprecated since Kubernetes 1.19"),
    ("metrics.k8s.io", "NodeMetrics", "a measurement, not a state"),
    ("metrics.k8s.io", "PodMetrics", "a measurement, not a state"),
    ("internal.apiserver.k8s.io", "StorageVersion", "how the API servers write to etcd, kept up by themselves"),
    ("certificates.k8s.io", "CertificateSigningRequest", "a request; it is deleted within a day"),
    ("storage.k8s.io", "VolumeAttachment", "follows where pods run"),
    ("storage.k8s.io", "CSIStorageCapacity", "a measurement, not a state"),
];

/// Why a kind is not listed unless asked for, if it is not.
pub fn left_out(group: &str, kind: &str) -> Option<&'static str> {
    LEFT_OUT.iter().find(|(in_group, named, _)| (*in_group, *named) == (group, kind)).map(|(_, _, reason)| *reason)
}

/// What objects of a kind are called: the version is not part of it, since one object is served in several.
pub fn kind_name(group: &str, kind: &str) -> String {
    format!("k8s::{}/{kind}", if group.is_empty() { "core" } else { group })
}

/// Where the objects of a namespace live, or those that belong to no namespace.
pub fn place_name(cluster: &str, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("k8s/{cluster}/{namespace}"),
        None => format!("k8s/{cluster}"),
    }
}

/// The id of an object, in the words of kubectl: `deployment.apps/shop/web`, `namespace/shop`.
pub fn object_id(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> String {
    let mut id = kind.to_lowercase();
    for (before, part) in [(".", Some(group)), ("/", namespace), ("/", Some(name))] {
        if let Some(part) = part.filter(|part| !part.is_empty()) {
            id.push_str(before);
            id.push_str(part);
        }
    }
    id
}

/// The name of a cluster as a part of a place: names of contexts and ARNs of clusters have slashes in them.
pub fn cluster_name(name: &str) -> String {
    if name.is_empty() { NOWHERE.to_owned() } else { name.replace('/', ":") }
}

/// What lists do not say themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The cluster's name, as a part of places.
    pub cluster: Option<String>,
    pub whole: Whole,
    /// Also what a controller made of another object: the pods of a replica set, the replica sets of a deployment.
    pub owned: bool,
}

/// Where the kinds that are in the documents were listed whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Whole {
    /// Nobody said so: nothing that is missing from the documents is known to be gone.
    #[default]
    Unsaid,
    Everywhere,
    Namespaces(Vec<String>),
}

/// Why nothing is known to be gone from documents of which nobody said what they cover.
const UNSAID: &str = "the documents do not say what was asked for; --all-namespaces or --namespace says it";

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    read_all(documents, &Asked { cluster: context.account.clone(), ..Asked::default() }).map(|listing| vec![listing])
}

/// Reads all documents of one pass over one cluster.
pub fn listing(documents: &[Document<'_>], asked: &Asked) -> Result<Listing, NormalizeError> {
    let listing = read_all(documents, asked)?;
    finish(documents, vec![listing]).map(|mut listings| listings.swap_remove(0))
}

/// How a listing was made. One with owned objects and one without do not see the same.
pub fn basis(asked: &Asked, identity: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = identity.into_iter().chain(asked.owned.then_some("with owned objects")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    metadata: RawMetadata,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawMetadata {
    r#continue: Option<String>,
}

fn read_all(documents: &[Document<'_>], asked: &Asked) -> Result<Listing, NormalizeError> {
    let mut pass = Pass { asked, listing: Listing::default(), kinds: BTreeSet::new(), cut: None, owned: 0 };
    for document in &open(documents)? {
        if document.text.trim_ascii_start().starts_with(['{', '[']) {
            pass.read_json(document)?;
        } else {
            pass.read_yaml(document)?;
        }
    }
    if pass.owned > 0 && pass.listing.resources.is_empty() {
        let message = format!("all {} objects were made by controllers, and those are left out", pass.owned);
        return Err(NormalizeError::new(documents.first().map_or("", |document| document.name), message)
            .hint("--owned observes them, too"));
    }
    Ok(pass.finish())
}

/// One pass over one cluster, while it is being read.
struct Pass<'a> {
    asked: &'a Asked,
    listing: Listing,
    /// Type, and whether its objects are in namespaces.
    kinds: BTreeSet<(String, bool)>,
    /// Why the documents are not whole, whatever was said of them.
    cut: Option<String>,
    owned: usize,
}

/// What the items of a list of one kind leave out.
#[derive(Clone, Copy, Default)]
struct OfList<'a> {
    api_version: Option<&'a str>,
    kind: Option<&'a str>,
}

impl Pass<'_> {
    fn cluster(&self) -> &str {
        self.asked.cluster.as_deref().unwrap_or(NOWHERE)
    }

    fn read_json(&mut self, document: &Opened<'_>) -> Result<(), NormalizeError> {
        let raw: Raw<'_> = crate::normalize::read(document)?;
        if !is_list(raw.kind.as_deref()) {
            let whole: &RawValue = crate::normalize::read(document)?;
            return self.object(document, value(document, whole)?, OfList::default(), "it");
        }
        // The API writes a list of nothing as null.
        let items: Option<Vec<&RawValue>> = raw
            .items
            .map(|items| serde_json::from_str(items.get()))
            .transpose()
            .map_err(|error| NormalizeError::json(&document.name, &error))?
            .flatten();
        let items = items.unwrap_or_default();
        let of_list =
            self.list(document, raw.api_version.as_deref(), raw.kind.as_deref(), raw.metadata.r#continue.as_deref())?;
        for (at, item) in items.iter().enumerate() {
            self.object(document, value(document, item)?, of_list, &format!("item {}", at + 1))?;
        }
        Ok(())
    }

    fn read_yaml(&mut self, document: &Opened<'_>) -> Result<(), NormalizeError> {
        for mut whole in yaml(document)? {
            if !is_list(text(&whole, "kind")) {
                self.object(document, whole, OfList::default(), "it")?;
                continue;
            }
            let items = match &mut whole {
                Value::Object(members) => members.remove("items"),
                _ => None,
            };
            let items = match items {
                Some(Value::Array(items)) => items,
                None | Some(Value::Null) => Vec::new(),
                Some(_) => return Err(NormalizeError::new(&document.name, "its `items` are not a list")),
            };
            let more = whole.get("metadata").and_then(|metadata| text(metadata, "continue"));
            let of_list = self.list(document, text(&whole, "apiVersion"), text(&whole, "kind"), more)?;
            for (at, item) in items.into_iter().enumerate() {
                self.object(document, item, of_list, &format!("item {}", at + 1))?;
            }
        }
        Ok(())
    }

    /// What a list says of its items: kubectl's `List` says nothing, and theirs are whole objects.
    fn list<'t>(
        &mut self,
        document: &Opened<'_>,
        api_version: Option<&'t str>,
        kind: Option<&'t str>,
        more: Option<&str>,
    ) -> Result<OfList<'t>, NormalizeError> {
        // Both are copied into every item that leaves them out.
        for (name, part) in [("apiVersion", api_version), ("kind", kind)] {
            if part.is_some_and(|part| part.len() > LONGEST) {
                return Err(NormalizeError::new(&document.name, format!("its `{name}` has more than {LONGEST} bytes")));
            }
        }
        if more.is_some_and(|more| !more.is_empty()) {
            self.cut = Some("a list ends at a page, and the next page is not there".into());
        }
        let of = kind.and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
        if let (Some(of), Some(api_version)) = (of, api_version) {
            // A list of nothing says something of its kind, too.
            self.kinds.insert((kind_name(group_of(api_version), of), true));
        }
        Ok(OfList { api_version: of.and(api_version), kind: of })
    }

    fn object(
        &mut self,
        document: &Opened<'_>,
        mut object: Value,
        of_list: OfList<'_>,
        which: &str,
    ) -> Result<(), NormalizeError> {
        self.listing.items += 1;
        if let Value::Object(members) = &mut object {
            for (name, part) in [("apiVersion", of_list.api_version), ("kind", of_list.kind)] {
                if let Some(part) = part.filter(|_| !members.contains_key(name)) {
                    members.insert(name.to_owned(), Value::from(part));
                }
            }
        }
        let metadata = object.get("metadata");
        let (Some(api_version), Some(kind), Some(name)) =
            (text(&object, "apiVersion"), text(&object, "kind"), metadata.and_then(|metadata| text(metadata, "name")))
        else {
            self.cut = Some("some items have no apiVersion, kind or metadata.name".into());
            self.listing.problem(
                &document.name,
                format!("{which} has no `apiVersion`, `kind` or `metadata.name`, and is left out"),
            );
            return Ok(());
        };
        let namespace = metadata.and_then(|metadata| text(metadata, "namespace"));
        let group = group_of(api_version);
        let type_name = kind_name(group, kind);
        self.kinds.insert((type_name.clone(), namespace.is_some()));
        if !self.asked.owned && has_controller(&object) {
            self.listing.items -= 1;
            self.owned += 1;
            return Ok(());
        }
        let key: ResourceKey =
            key(&type_name, &place_name(self.cluster(), namespace), &object_id(group, kind, namespace, name));
        let sensitive = secret_paths(&type_name);
        self.listing.add(key, &object, sensitive, &document.name)
    }

    fn finish(mut self) -> Listing {
        let cluster = self.cluster().to_owned();
        let partial = |reason: &str| Outcome::Partial { reason: reason.to_owned() };
        let mut coverage = Coverage::new();
        for (kind, namespaced) in &self.kinds {
            let mut cover = |place: String, outcome: Outcome| {
                coverage.record(Extent { kind: kind.clone(), place }, outcome);
            };
            let outcome = self.cut.as_deref().map_or(Outcome::Complete, partial);
            match &self.asked.whole {
                Whole::Unsaid => cover("*".into(), partial(self.cut.as_deref().unwrap_or(UNSAID))),
                Whole::Everywhere => cover("*".into(), outcome),
                Whole::Namespaces(_) if !namespaced => cover(place_name(&cluster, None), outcome),
                Whole::Namespaces(namespaces) => {
                    for namespace in namespaces {
                        cover(place_name(&cluster, Some(namespace)), outcome.clone());
                    }
                }
            }
        }
        self.listing.coverage = coverage.on_basis(basis(self.asked, None));
        self.listing
    }
}

/// `apps` of `apps/v1`; the first group has no name.
fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// By the convention that every API follows: the list of the kind `Pod` is of the kind `PodList`.
fn is_list(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind.ends_with("List"))
}

/// Whether another object's controller made this one: then that other one is what somebody decided.
fn has_controller(object: &Value) -> bool {
    let owners = object.get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
    let owners = owners.and_then(Value::as_array).unwrap_or_default();
    owners.iter().any(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

/// Where the secrets of an object are, by its type.
fn secret_paths(kind: &str) -> Vec<Pattern> {
    match kind == kind_name("", "Secret") {
        true => SECRET_PATHS.iter().map(|path| path.parse().expect("a pattern written here")).collect(),
        false => Vec::new(),
    }
}

/// What of a `Secret` is secret.
pub(crate) const SECRET_PATHS: [&str; 3] =
    ["/data/*", "/stringData/*", "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"];

/// Every document of a YAML text. Aliases do not multiply, and nesting has an end.
fn yaml(document: &Opened<'_>) -> Result<Vec<Value>, NormalizeError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 20_000_000,
            max_nodes: 10_000_000,
            max_total_scalar_bytes: usize::MAX,
            max_aliases: 100,
            max_anchors: 100,
            max_depth: 64,
            max_documents: 100_000,
            flow_nesting_limit: 64,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
            max_replay_stack_depth: 8,
        },
        // An excerpt of the input may hold a secret.
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(document.text, options).map_err(|error| {
        let text = error.to_string();
        NormalizeError::new(&document.name, text.lines().next().unwrap_or_default())
            .hint("documents are JSON or YAML, as `kubectl get -o json` and `-o yaml` print them")
    })
}

#[cfg(test)]
#[path = "kubernetes/tests.rs"]
mod tests;
