//! The kinds that a cluster serves, and which of them to list.

use driftline_sources::kubernetes::left_out;
use futures_util::{StreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;
use kube::core::ApiResource;

use super::{AT_ONCE, ObserveError};

/// A kind that can be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub resource: ApiResource,
    pub namespaced: bool,
    /// Other names by which kubectl knows it.
    also: Vec<String>,
}

impl Kind {
    pub(super) fn of(resource: ApiResource, namespaced: bool) -> Self {
        Self { resource, namespaced, also: Vec::new() }
    }

    /// As kubectl writes it: `deployments.apps`, `secrets`.
    pub(super) fn name(&self) -> String {
        match self.resource.group.as_str() {
            "" => self.resource.plural.clone(),
            group => format!("{}.{group}", self.resource.plural),
        }
    }

    /// Whether somebody may mean it: by its plural, singular or short name or its kind, with or without a group.
    fn is_called(&self, name: &str) -> bool {
        let (own, group) = name.split_once('.').map_or((name, None), |(own, group)| (own, Some(group)));
        let own = own.to_lowercase();
        let fits = self.resource.plural == own
            || self.resource.kind.to_lowercase() == own
            || self.also.iter().any(|also| also.to_lowercase() == own);
        let versioned = format!("{}.{}", self.resource.version, self.resource.group);
        let in_group =
            group.is_none_or(|group| group == self.resource.group || group == versioned.trim_end_matches('.'));
        fits && in_group
    }
}

/// The resource `namespaces`, which every cluster has.
pub(super) fn namespaces() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "Namespace".into(),
        plural: "namespaces".into(),
    }
}

/// Of what something is to be said, and what.
pub(super) type Problems = Vec<(String, String)>;

/// What a cluster serves.
#[derive(Debug, Default)]
pub(super) struct Served {
    kinds: Vec<Kind>,
    /// Groups that are announced and do not answer, and why.
    broken: Problems,
}

/// Asks for every group in the version that its server prefers. A group whose own server is down is said, not fatal.
pub(super) async fn discover(client: &Client) -> Result<Served, kube::Error> {
    let mut served = Served::default();
    served.take("v1", client.list_core_api_resources("v1").await?);
    let groups = client.list_api_groups().await?.groups;
    let versions: Vec<String> = groups
        .into_iter()
        .filter_map(|group| {
            let first = group.versions.first().cloned();
            Some(group.preferred_version.or(first)?.group_version)
        })
        .collect();
    let answers = stream::iter(versions).map(|version| async move {
        let answer = client.list_api_group_resources(&version).await;
        (version, answer)
    });
    let mut answers: Vec<_> = answers.buffer_unordered(AT_ONCE).collect().await;
    answers.sort_by(|a, b| a.0.cmp(&b.0));
    for (version, answer) in answers {
        match answer {
            Ok(resources) => served.take(&version, resources),
            Err(kube::Error::Api(status)) => served.broken.push((version, status.message)),
            Err(error) => return Err(error),
        }
    }
    Ok(served)
}

impl Served {
    fn take(&mut self, version: &str, list: APIResourceList) {
        for resource in list.resources {
            if resource.name.contains('/') || !resource.verbs.iter().any(|verb| verb == "list") {
                continue;
            }
            self.kinds.push(kind(version, resource));
        }
    }

    /// The kinds that are named, or all that are a state of the cluster; and what is to be said of that.
    pub(super) fn choose(self, named: &[String]) -> Result<(Vec<Kind>, Problems), ObserveError> {
        if named.is_empty() {
            let broken = self.broken.into_iter().map(|(group, why)| {
                (group, format!("the group does not answer, so nothing in it was looked at: {why}"))
            });
            let kinds =
                self.kinds.into_iter().filter(|kind| left_out(&kind.resource.group, &kind.resource.kind).is_none());
            return Ok((kinds.collect(), broken.collect()));
        }
        let mut chosen: Vec<Kind> = Vec::new();
        for name in named {
            let mut fitting: Vec<&Kind> = self.kinds.iter().filter(|kind| kind.is_called(name)).collect();
            // As for kubectl, the oldest group goes first.
            if let Some(core) = fitting.iter().find(|kind| kind.resource.group.is_empty()) {
                fitting = vec![core];
            }
            match fitting.as_slice() {
                [] => return Err(ObserveError::UnknownKind { name: name.clone() }),
                [one] => {
                    if !chosen.contains(one) {
                        chosen.push((*one).clone());
                    }
                }
                several => {
                    let groups = several.iter().map(|kind| kind.name()).collect();
                    return Err(ObserveError::AmbiguousKind { name: name.clone(), groups });
                }
            }
        }
        Ok((chosen, Vec::new()))
    }
}

fn kind(version: &str, resource: APIResource) -> Kind {
    let (group, number) = version.rsplit_once('/').unwrap_or(("", version));
    let also = resource.short_names.unwrap_or_default().into_iter().chain([resource.singular_name]);
    Kind {
        namespaced: resource.namespaced,
        also: also.filter(|name| !name.is_empty()).collect(),
        resource: ApiResource {
            group: group.to_owned(),
            version: number.to_owned(),
            api_version: version.to_owned(),
            kind: resource.kind,
            plural: resource.name,
        },
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn served() -> Served {
        let resource = |name: &str, kind: &str, short: &[&str], verbs: &[&str]| APIResource {
            name: name.into(),
            kind: kind.into(),
            namespaced: true,
            short_names: Some(short.iter().map(ToString::to_string).collect()),
            singular_name: kind.to_lowercase(),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..APIResource::default()
        };
        let mut served = Served::default();
        let list = |resources| APIResourceList { resources, ..APIResourceList::default() };
        served.take(
            "v1",
            list(vec![
                resource("pods", "Pod", &["po"], &["get", "list"]),
                resource("pods/log", "Pod", &[], &["get", "list"]),
                resource("bindings", "Binding", &[], &["create"]),
                resource("events", "Event", &["ev"], &["list"]),
            ]),
        );
        served.take("apps/v1", list(vec![resource("deployments", "Deployment", &["deploy"], &["list"])]));
        served.take("a.example/v1", list(vec![resource("things", "Thing", &[], &["list"])]));
        served.take(
            "b.example/v1",
            list(vec![resource("things", "Thing", &[], &["list"]), resource("pods", "Pod", &[], &["list"])]),
        );
        served
    }

    fn names(kinds: &[Kind]) -> Vec<String> {
        kinds.iter().map(Kind::name).collect()
    }

    #[test]
    fn all_kinds_are_chosen_but_those_that_are_no_state_and_those_that_cannot_be_listed() {
        let (kinds, problems) = served().choose(&[]).unwrap();
        assert_eq!(
            names(&kinds),
            ["pods", "deployments.apps", "things.a.example", "things.b.example", "pods.b.example"]
        );
        assert_eq!(problems, []);
        let broken = Served { broken: vec![("metrics.k8s.io/v1".into(), "unavailable".into())], ..served() };
        assert!(broken.choose(&[]).unwrap().1[0].1.contains("nothing in it was looked at"));
    }

    #[test]
    fn a_kind_is_called_as_kubectl_calls_it() {
        for (name, chosen) in [
            ("pods", "pods"),
            ("po", "pods"),
            ("Pod", "pods"),
            ("pods.b.example", "pods.b.example"),
            ("deploy", "deployments.apps"),
            ("deployments.apps", "deployments.apps"),
            ("deployments.v1.apps", "deployments.apps"),
            ("events", "events"),
            ("things.a.example", "things.a.example"),
        ] {
            assert_eq!(names(&served().choose(&[name.to_owned()]).unwrap().0), [chosen], "{name}");
        }
        assert!(
            matches!(served().choose(&["things".into()]), Err(ObserveError::AmbiguousKind { groups, .. }) if groups.len() == 2)
        );
        assert!(matches!(served().choose(&["nothing".into()]), Err(ObserveError::UnknownKind { .. })));
        assert!(matches!(served().choose(&["bindings".into()]), Err(ObserveError::UnknownKind { .. })));
    }
}
