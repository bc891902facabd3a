//! `observe kubernetes`: what lists of objects say, or a cluster itself.

use driftline_core::{SourceName, StreamId};
use driftline_sources::kubernetes::{self, Asked, Whole};
use driftline_sources::normalize::{Document, Listing, NormalizeError};
use jiff::Timestamp;

use crate::args::{KubernetesArgs, PermissionArgs};
use crate::documents;
use crate::error::{CommandError, CommandResult};
use crate::observe::{Line, commit_listing};
use crate::settings::Settings;
use crate::time::parse_moment;

const OBSERVER: &str = "driftline observe kubernetes";

/// Which objects are observed, and where they are read from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    /// Lists that were written before; without any, a cluster is asked.
    pub documents: Vec<String>,
    pub context: Option<String>,
    /// What the cluster is called in places.
    pub cluster: Option<String>,
    pub namespaces: Vec<String>,
    pub all_namespaces: bool,
    pub kinds: Vec<String>,
    pub owned: bool,
}

pub(crate) fn run(settings: &Settings, args: KubernetesArgs) -> CommandResult<Vec<Line>> {
    let taken_at = args.taken_at.as_ref().map(|text| parse_moment(text, settings.now)).transpose()?;
    let name = args.name.map(|name| name.parse::<SourceName>()).transpose();
    let name = name.map_err(|error| CommandError::new(error.to_string()))?;
    let objects = Objects {
        documents: args.documents,
        context: args.context,
        cluster: args.cluster,
        namespaces: args.namespace,
        all_namespaces: args.all_namespaces,
        kinds: args.kind,
        owned: args.owned,
    };
    observe(settings, name.as_ref(), &objects, taken_at, args.permissions).map(|line| vec![line])
}

/// One pass over one cluster. Without a name the source is called after the cluster.
pub(crate) fn observe(
    settings: &Settings,
    name: Option<&SourceName>,
    objects: &Objects,
    taken_at: Option<Timestamp>,
    permissions: PermissionArgs,
) -> CommandResult<Line> {
    objects.check()?;
    let about = |error: CommandError| error.about("cannot observe kubernetes").hint("nothing was committed");
    let (mut listing, cluster) = match objects.documents.is_empty() {
        true => live(objects).map_err(about)?,
        false => (from_documents(objects).map_err(about)?, objects.cluster.clone()),
    };
    listing.taken_at = listing.taken_at.or(taken_at);
    let source = match (name, cluster) {
        (Some(name), _) => name.clone(),
        (None, Some(cluster)) => called_after(&cluster)?,
        (None, None) => "kubernetes".parse().expect("a good name"),
    };
    commit_listing(settings, StreamId { source, scope: None }, listing, OBSERVER, permissions)
}

impl Objects {
    pub(crate) fn check(&self) -> CommandResult<()> {
        let error = |text: &str| Err(CommandError::new(text));
        match self.documents.is_empty() {
            _ if self.all_namespaces && !self.namespaces.is_empty() => {
                error("--all-namespaces and --namespace say different things")
            }
            false if self.context.is_some() || !self.kinds.is_empty() => {
                error("--context and --kind are for asking a cluster; documents have been asked for already")
            }
            _ => Ok(()),
        }
    }

    /// Where they come from, in a few words.
    pub(crate) fn told(&self) -> String {
        match (self.documents.as_slice(), &self.context) {
            ([], Some(context)) => format!("the cluster of the context {context}"),
            ([], None) => "the cluster of the current context".into(),
            (documents, _) => format!("kubernetes documents {}", documents.join(" ")),
        }
    }

    fn asked(&self, cluster: Option<&str>) -> Asked {
        let whole = match (self.all_namespaces, self.namespaces.is_empty()) {
            (true, _) => Whole::Everywhere,
            (false, false) => Whole::Namespaces(self.namespaces.clone()),
            (false, true) => Whole::Unsaid,
        };
        Asked { cluster: cluster.map(kubernetes::cluster_name), whole, owned: self.owned }
    }
}

/// The name of a source may not have every character that the name of a cluster has.
fn called_after(cluster: &str) -> CommandResult<SourceName> {
    let name: String = cluster
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '-' })
        .collect();
    format!("kubernetes/{name}").parse().map_err(|error: driftline_core::NameError| {
        CommandError::new(error.to_string()).hint("--name gives the source another name")
    })
}

fn from_documents(objects: &Objects) -> CommandResult<Listing> {
    let texts = documents::read_all(&objects.documents)?;
    let documents: Vec<Document<'_>> =
        texts.iter().map(|text| Document { name: &text.name, bytes: &text.bytes, written_at: None }).collect();
    kubernetes::listing(&documents, &objects.asked(objects.cluster.as_deref())).map_err(refused)
}

fn refused(error: NormalizeError) -> CommandError {
    let refused = CommandError::new(error.to_string());
    match error.hint {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

/// Asks the cluster.
#[cfg(feature = "kube")]
fn live(objects: &Objects) -> CommandResult<(Listing, Option<String>)> {
    use driftline_kube::observe::{ObserveError, Options, observe};

    let options = Options {
        context: objects.context.clone(),
        cluster: objects.cluster.clone(),
        namespaces: objects.namespaces.clone(),
        kinds: objects.kinds.clone(),
        owned: objects.owned,
    };
    match observe(&options) {
        Ok(observed) => Ok((observed.listing, Some(observed.cluster))),
        Err(ObserveError::Normalize(error)) => Err(refused(error)),
        Err(error) => {
            let refused = CommandError::new(error.to_string());
            Err(match &error {
                ObserveError::Config(_) => {
                    refused.hint("KUBECONFIG names the file; `kubectl config get-contexts` lists what is in it")
                }
                ObserveError::UnknownKind { .. } => {
                    refused.hint("`kubectl api-resources --verbs=list` lists the kinds of the cluster")
                }
                ObserveError::AmbiguousKind { groups, .. } => {
                    refused.hint(format!("write the group, too: --kind {}", groups.first().map_or("", String::as_str)))
                }
                ObserveError::Unauthorized { .. } => {
                    refused.hint("`kubectl auth whoami` asks with the same kubeconfig")
                }
                _ => refused.hint("`kubectl cluster-info` asks the same cluster"),
            })
        }
    }
}

#[cfg(not(feature = "kube"))]
fn live(_objects: &Objects) -> CommandResult<(Listing, Option<String>)> {
    Err(CommandError::new("this build cannot ask a cluster: it was made without the feature `kube`")
        .hint("give documents (`kubectl get deployments,services -A -o json`), or build with `--features kube`"))
}
