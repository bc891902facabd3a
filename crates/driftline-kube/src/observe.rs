//! `observe kubernetes`, live: every object of the chosen kinds, and how listing each kind went.
//!
//! A kind that cannot be listed is a partial extent with its reason; only a cluster that cannot be asked at all is an
//! error.

mod kinds;

use driftline_core::{Coverage, Extent, Outcome};
use driftline_sources::kubernetes::{self, Asked, basis, cluster_name, kind_name, place_name};
use driftline_sources::normalize::{Document, Listing, NormalizeError};
use futures_util::{StreamExt, stream};
use kube::api::{DynamicObject, GetParams, ListParams, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Resource};
use serde::Deserialize;
use thiserror::Error;

use self::kinds::Kind;

/// What to observe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The context of the kubeconfig; its current one, or the cluster this runs in, if none.
    pub context: Option<String>,
    /// What the cluster is called in places; as the kubeconfig calls it, if none.
    pub cluster: Option<String>,
    /// Every namespace, if none is named.
    pub namespaces: Vec<String>,
    /// As kubectl names them; all but a few, if none is named.
    pub kinds: Vec<String>,
    /// Also what controllers made of other objects.
    pub owned: bool,
}

/// What one pass over a cluster saw.
#[derive(Debug)]
pub struct Observed {
    /// The cluster's name.
    pub cluster: String,
    pub listing: Listing,
}

/// Why a cluster could not be observed at all.
#[derive(Debug, Error)]
pub enum ObserveError {
    #[error("cannot start the client of the cluster")]
    Runtime(#[source] std::io::Error),
    #[error("no cluster is configured: {0}")]
    Config(String),
    #[error("the cluster at {server} does not answer: {message}")]
    Unreachable { server: String, message: String },
    #[error("the cluster at {server} does not know who is asking: {message}")]
    Unauthorized { server: String, message: String },
    #[error("the cluster has no kind `{name}` that can be listed")]
    UnknownKind { name: String },
    #[error("`{name}` is a kind of several groups: {}", .groups.join(", "))]
    AmbiguousKind { name: String, groups: Vec<String> },
    #[error("{0}")]
    Normalize(NormalizeError),
}

/// How many lists are asked for at once: an API server serves so many readers beside its controllers with ease.
const AT_ONCE: usize = 8;

/// How many objects a page may have; what kubectl asks for.
const PAGE: u32 = 500;

/// Lists a cluster, in a runtime of its own: whoever asks waits for the answer and for nothing else.
pub fn observe(options: &Options) -> Result<Observed, ObserveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ObserveError::Runtime)?;
    runtime.block_on(list(options))
}

async fn list(options: &Options) -> Result<Observed, ObserveError> {
    let (config, name) = configuration(options).await?;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config).map_err(|error| ObserveError::Config(error.to_string()))?;
    list_with(&client, &server, options.cluster.as_deref().unwrap_or(&name), options).await
}

async fn list_with(client: &Client, server: &str, name: &str, options: &Options) -> Result<Observed, ObserveError> {
    let found = kinds::discover(client).await.map_err(|error| failed(server, &error))?;
    let (chosen, mut problems) = found.choose(&options.kinds)?;
    let cluster = cluster_name(name);
    let lister = Lister { client, cluster: &cluster, namespaces: &options.namespaces };
    let identity = lister.identity(server).await;
    let everywhere = lister.all_namespaces().await;
    let lists = stream::iter(&chosen).map(|kind| lister.list_kind(kind, everywhere.as_deref()));
    let mut lists: Vec<KindLists> = lists.buffer_unordered(AT_ONCE).collect().await;
    // In whatever order they answered.
    lists.sort_by(|a, b| a.kind.cmp(&b.kind));
    let asked = Asked { cluster: Some(cluster.clone()), owned: options.owned, ..Asked::default() };
    let mut coverage = Coverage::new().on_basis(basis(&asked, Some(&identity)));
    for (kind, place, outcome) in lists.iter().flat_map(|list| &list.extents) {
        coverage.record(Extent { kind: kind.clone(), place: place.clone() }, outcome.clone());
    }
    let pages: Vec<(&str, &String)> =
        lists.iter().flat_map(|list| list.pages.iter().map(|page| (list.kind.as_str(), page))).collect();
    let documents: Vec<Document<'_>> =
        pages.iter().map(|(name, page)| Document { name, bytes: page.as_bytes(), written_at: None }).collect();
    // No page is no document, and nothing to read.
    let mut listing = match documents.is_empty() {
        true => Listing::of_nothing(Coverage::new()),
        false => kubernetes::listing(&documents, &asked).map_err(ObserveError::Normalize)?,
    };
    listing.coverage = coverage;
    for list in &lists {
        problems.extend(list.problems.iter().map(|problem| (list.kind.clone(), problem.clone())));
    }
    for (about, message) in problems {
        listing.problem(about, message);
    }
    Ok(Observed { cluster, listing })
}

/// The configuration to ask with, and what the cluster is called in it.
async fn configuration(options: &Options) -> Result<(Config, String), ObserveError> {
    let wrong = |error: &dyn std::fmt::Display| ObserveError::Config(error.to_string());
    match Kubeconfig::read() {
        Ok(file) => {
            let wanted = options.context.as_ref().or(file.current_context.as_ref());
            let named = file.contexts.iter().find(|context| Some(&context.name) == wanted);
            let name = named.and_then(|named| named.context.as_ref()).map(|context| context.cluster.clone());
            let choice = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
            let config = Config::from_custom_kubeconfig(file, &choice).await.map_err(|error| wrong(&error))?;
            Ok((config, name.unwrap_or_default()))
        }
        // Without a file, and only if none is asked for, this may be a pod.
        Err(error) if options.context.is_none() => match Config::incluster() {
            Ok(config) => Ok((config, "in-cluster".into())),
            Err(_) => Err(wrong(&error)),
        },
        Err(error) => Err(wrong(&error)),
    }
}

/// What one kind came to.
#[derive(Debug, Default)]
struct KindLists {
    kind: String,
    pages: Vec<String>,
    extents: Vec<(String, String, Outcome)>,
    problems: Vec<String>,
}

struct Lister<'a> {
    client: &'a Client,
    cluster: &'a str,
    namespaces: &'a [String],
}

/// Why a list could not be had.
enum Refusal {
    Forbidden(String),
    /// The kind or the namespace is not there.
    Gone(String),
    Failed(String),
}

impl Refusal {
    fn reason(&self) -> &str {
        match self {
            Refusal::Forbidden(reason) | Refusal::Gone(reason) | Refusal::Failed(reason) => reason,
        }
    }
}

impl Lister<'_> {
    /// By what this cluster is told from another of the same name: no cluster is made without this namespace.
    async fn identity(&self, server: &str) -> String {
        let resource = kinds::namespaces();
        let request = Request::new(DynamicObject::url_path(&resource, None)).get("kube-system", &GetParams::default());
        let found: Result<DynamicObject, _> = match request {
            Ok(request) => self.client.request(request).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        match found.ok().and_then(|namespace| namespace.metadata.uid) {
            Some(uid) => format!("cluster {uid}"),
            None => format!("API server {server}"),
        }
    }

    /// The names of all namespaces, or why they are not known.
    async fn all_namespaces(&self) -> Option<Vec<String>> {
        let (pages, outcome) = self.pages(&Kind::of(kinds::namespaces(), false), None).await;
        if outcome.is_err() {
            return None;
        }
        let mut names = Vec::new();
        for page in &pages {
            let page: NamePage = serde_json::from_str(page).ok()?;
            names.extend(page.items.into_iter().map(|item| item.metadata.name));
        }
        Some(names)
    }

    async fn list_kind(&self, kind: &Kind, everywhere: Option<&[String]>) -> KindLists {
        let mut lists = KindLists { kind: kind.name(), ..KindLists::default() };
        let type_name = kind_name(&kind.resource.group, &kind.resource.kind);
        if kind.namespaced && !self.namespaces.is_empty() {
            self.list_namespaces(kind, &type_name, self.namespaces, &mut lists).await;
            return lists;
        }
        let (pages, outcome) = self.pages(kind, None).await;
        lists.pages = pages;
        let (place, refusal) = match outcome {
            // Of every place: also a namespace that is gone was looked at.
            Ok(()) if kind.namespaced => ("*".to_owned(), None),
            Ok(()) => (place_name(self.cluster, None), None),
            Err(refusal) => ("*".to_owned(), Some(refusal)),
        };
        let Some(refusal) = refusal else {
            lists.extents.push((type_name, place, Outcome::Complete));
            return lists;
        };
        lists.problems.push(refusal.reason().to_owned());
        lists.extents.push((type_name.clone(), place, Outcome::Partial { reason: refusal.reason().to_owned() }));
        // Who may not list a kind everywhere may still list it in some namespaces.
        if let (Refusal::Forbidden(_), true, Some(namespaces)) = (&refusal, kind.namespaced, everywhere) {
            let mut apart = KindLists::default();
            self.list_namespaces(kind, &type_name, namespaces, &mut apart).await;
            let allowed = apart.extents.iter().any(|(_, _, outcome)| *outcome == Outcome::Complete);
            if allowed {
                lists.pages.append(&mut apart.pages);
                lists.extents.append(&mut apart.extents);
            }
        }
        lists
    }

    async fn list_namespaces(&self, kind: &Kind, type_name: &str, namespaces: &[String], lists: &mut KindLists) {
        for namespace in namespaces {
            let (mut pages, outcome) = self.pages(kind, Some(namespace)).await;
            lists.pages.append(&mut pages);
            let outcome = match outcome {
                Ok(()) => Outcome::Complete,
                Err(refusal) => {
                    lists.problems.push(refusal.reason().to_owned());
                    Outcome::Partial { reason: refusal.reason().to_owned() }
                }
            };
            lists.extents.push((type_name.to_owned(), place_name(self.cluster, Some(namespace)), outcome));
        }
    }

    /// All pages of one list. What came before a refusal is kept: it was seen.
    async fn pages(&self, kind: &Kind, namespace: Option<&str>) -> (Vec<String>, Result<(), Refusal>) {
        let mut pages = Vec::new();
        let mut parameters = ListParams::default().limit(PAGE);
        loop {
            let page = match self.page(kind, namespace, &parameters).await {
                Ok(page) => page,
                // The pages of one list are of one moment, which the server has forgotten: what was read is not part of
                // a whole any more. Asked for in one piece, a list has no moment to forget.
                Err(kube::Error::Api(status)) if status.code == 410 && parameters.limit.is_some() => {
                    pages.clear();
                    parameters = ListParams::default();
                    continue;
                }
                Err(error) => return (pages, Err(refusal(&error, kind, namespace))),
            };
            let more = match serde_json::from_str::<Page>(&page) {
                Ok(page) => page.metadata.r#continue.filter(|more| !more.is_empty()),
                Err(error) => {
                    let reason = format!("the list of {} is not JSON at line {}", kind.name(), error.line());
                    return (pages, Err(Refusal::Failed(reason)));
                }
            };
            pages.push(page);
            match more {
                Some(more) => parameters.continue_token = Some(more),
                None => return (pages, Ok(())),
            }
        }
    }

    async fn page(&self, kind: &Kind, namespace: Option<&str>, parameters: &ListParams) -> Result<String, kube::Error> {
        let url = DynamicObject::url_path(&kind.resource, namespace);
        let request = Request::new(url).list(parameters).map_err(kube::Error::BuildRequest)?;
        self.client.request_text(request).await
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    r#continue: Option<String>,
}

#[derive(Deserialize)]
struct NamePage {
    #[serde(default)]
    items: Vec<NameItem>,
}

#[derive(Deserialize)]
struct NameItem {
    metadata: NameMetadata,
}

#[derive(Deserialize)]
struct NameMetadata {
    name: String,
}

/// What kept a list from being had, with the verb and the kind that were asked for.
fn refusal(error: &kube::Error, kind: &Kind, namespace: Option<&str>) -> Refusal {
    let at = match namespace {
        Some(namespace) => format!(" in the namespace {namespace}"),
        None if kind.namespaced => " in all namespaces".to_owned(),
        None => String::new(),
    };
    let asked = format!("`list` of `{}`{at}", kind.name());
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            Refusal::Forbidden(format!("{asked} is forbidden: {}", status.message))
        }
        kube::Error::Api(status) if status.code == 404 || status.code == 405 => {
            Refusal::Gone(format!("{asked} is not served ({}): {}", status.code, status.message))
        }
        kube::Error::Api(status) => Refusal::Failed(format!("{asked} failed ({}): {}", status.code, status.message)),
        other => Refusal::Failed(format!("{asked} failed: {}", chain(other))),
    }
}

/// Why nothing could be asked.
fn failed(server: &str, error: &kube::Error) -> ObserveError {
    let server = server.to_owned();
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            ObserveError::Unauthorized { server, message: status.message.clone() }
        }
        kube::Error::Api(status) => ObserveError::Unreachable { server, message: status.message.clone() },
        kube::Error::Auth(error) => ObserveError::Unauthorized { server, message: chain(error) },
        other => ObserveError::Unreachable { server, message: chain(other) },
    }
}

/// An error and its causes, each said once: those of the client repeat their causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
#[path = "observe/tests.rs"]
mod tests;
