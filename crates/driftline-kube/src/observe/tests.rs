#![expect(clippy::unwrap_used, reason = "tests")]

//! A server that answers as it is told: what a real one does only on a bad day.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use driftline_core::Outcome;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value as Json, json};

use super::{ObserveError, Observed, Options, list_with};

/// What is answered to a path with its query, in turn; the last answer is given again and again.
type Answers = BTreeMap<&'static str, Vec<(u16, Json)>>;

fn status(code: u16, reason: &str) -> (u16, Json) {
    let message = format!("{reason} it is");
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}),
    )
}

/// A cluster with config maps and deployments, and one namespace.
fn cluster() -> Answers {
    let resource = |name: &str, kind: &str| json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list"]});
    let list = |version: &str, resources: Json| {
        (200, json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources}))
    };
    let version = json!({"groupVersion": "apps/v1", "version": "v1"});
    let group = json!({"name": "apps", "versions": [version], "preferredVersion": version});
    Answers::from([
        ("/api/v1", vec![list("v1", json!([resource("configmaps", "ConfigMap")]))]),
        ("/apis", vec![(200, json!({"kind": "APIGroupList", "groups": [group]}))]),
        ("/apis/apps/v1", vec![list("apps/v1", json!([resource("deployments", "Deployment")]))]),
        ("/api/v1/namespaces/kube-system", vec![(200, json!({"metadata": {"name": "kube-system", "uid": "u"}}))]),
        ("/api/v1/namespaces?limit=500", vec![(200, json!({"items": [{"metadata": {"name": "shop"}}]}))]),
        ("/apis/apps/v1/deployments?limit=500", vec![(200, page("DeploymentList", "apps/v1", &["web"], ""))]),
        ("/api/v1/configmaps?limit=500", vec![(200, page("ConfigMapList", "v1", &["a"], ""))]),
    ])
}

fn page(kind: &str, version: &str, names: &[&str], more: &str) -> Json {
    let item = |name: &&str| json!({"metadata": {"name": name, "namespace": "shop"}});
    let items: Vec<Json> = names.iter().map(item).collect();
    json!({"kind": kind, "apiVersion": version, "metadata": {"continue": more}, "items": items})
}

fn observe(answers: Answers, options: &Options) -> (Result<Observed, ObserveError>, Vec<String>) {
    let (left, asked) = (Arc::new(Mutex::new(answers)), Arc::new(Mutex::new(Vec::new())));
    let log = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        // The client writes the mark of a query whether there is one or not.
        let path = request.uri().path_and_query().unwrap().as_str().replace("?&", "?");
        let path = path.trim_end_matches('?').to_owned();
        log.lock().unwrap().push(path.clone());
        let mut left = left.lock().unwrap();
        let (code, body) = match left.get_mut(path.as_str()) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => status(404, "NotFound"),
        };
        let reply = Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap();
        async move { Ok::<_, Infallible>(reply) }
    });
    let client = || Client::new(service, "default");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async { list_with(&client(), "https://test", "test", options).await });
    let asked = asked.lock().unwrap().clone();
    (outcome, asked)
}

/// How a kind was listed in the namespace: `complete`, why not, or nothing.
fn listed(observed: &Observed, kind: &str, place: &str) -> String {
    match observed.listing.coverage.outcome(kind, place) {
        Some(Outcome::Complete) => "complete".into(),
        Some(Outcome::Partial { reason }) => reason.clone(),
        None => String::new(),
    }
}

const MAPS: &str = "k8s::core/ConfigMap";
const DEPLOYMENTS: &str = "k8s::apps/Deployment";

#[test]
fn a_list_whose_moment_the_server_has_forgotten_is_asked_for_again_in_one_piece() {
    let mut answers = cluster();
    answers.insert("/api/v1/configmaps?limit=500", vec![(200, page("ConfigMapList", "v1", &["a"], "next"))]);
    answers.insert("/api/v1/configmaps?limit=500&continue=next", vec![status(410, "Expired")]);
    answers.insert("/api/v1/configmaps", vec![(200, page("ConfigMapList", "v1", &["b", "c"], ""))]);
    let (observed, asked) = observe(answers, &Options::default());
    let observed = observed.unwrap();
    let ids: Vec<&str> = observed.listing.resources.keys().map(|key| key.id.as_str()).collect();
    assert_eq!(ids, ["deployment.apps/shop/web", "configmap/shop/b", "configmap/shop/c"], "{asked:#?}");
    assert_eq!(listed(&observed, MAPS, "k8s/test/shop"), "complete");
}

#[test]
fn a_list_that_breaks_off_is_partial_and_keeps_what_was_seen() {
    let mut answers = cluster();
    answers.insert("/api/v1/configmaps?limit=500", vec![(200, page("ConfigMapList", "v1", &["a"], "next"))]);
    answers.insert("/api/v1/configmaps?limit=500&continue=next", vec![status(500, "InternalError")]);
    let observed = observe(answers, &Options::default()).0.unwrap();
    assert_eq!(observed.listing.resources.len(), 2);
    assert!(listed(&observed, MAPS, "k8s/test/shop").contains("`list` of `configmaps` in all namespaces failed (500)"));
    assert_eq!(listed(&observed, DEPLOYMENTS, "k8s/test/shop"), "complete");
    assert_eq!(observed.listing.problems.len(), 1);
}

#[test]
fn who_may_not_list_everywhere_lists_where_it_may() {
    let mut answers = cluster();
    answers.insert("/api/v1/configmaps?limit=500", vec![status(403, "Forbidden")]);
    answers
        .insert("/api/v1/namespaces/shop/configmaps?limit=500", vec![(200, page("ConfigMapList", "v1", &["a"], ""))]);
    let observed = observe(answers, &Options::default()).0.unwrap();
    assert_eq!(listed(&observed, MAPS, "k8s/test/shop"), "complete");
    let elsewhere = listed(&observed, MAPS, "k8s/test/other");
    assert!(elsewhere.contains("`list` of `configmaps` in all namespaces is forbidden"), "{elsewhere}");
}

#[test]
fn a_group_that_does_not_answer_is_said_and_the_rest_is_listed() {
    let mut answers = cluster();
    answers.insert("/apis/apps/v1", vec![status(503, "ServiceUnavailable")]);
    let observed = observe(answers, &Options::default()).0.unwrap();
    assert_eq!(observed.listing.resources.len(), 1);
    assert_eq!(listed(&observed, DEPLOYMENTS, "k8s/test/shop"), "", "nobody looked");
    assert!(observed.listing.problems[0].message.contains("nothing in it was looked at"));
    let unauthorized = Answers::from([("/api/v1", vec![status(401, "Unauthorized")])]);
    assert!(matches!(observe(unauthorized, &Options::default()).0, Err(ObserveError::Unauthorized { .. })));
}
