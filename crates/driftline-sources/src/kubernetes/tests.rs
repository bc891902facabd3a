#![expect(clippy::unwrap_used, reason = "tests")]

use driftline_core::Value;

use super::{Asked, Whole, cluster_name, left_out, listing, object_id};
use crate::normalize::testing::{extent, keys, normalize, properties};
use crate::normalize::{Document, Listing, Model, NormalizeError};

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"1"},"spec":{"replicas":2},"status":{"replicas":2}}"#;
const NAMESPACE: &str = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}"#;
const OWNED: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","ownerReferences":[{"kind":"ReplicaSet","name":"web","controller":true,"uid":"2"}]}}"#;

fn read(texts: &[&str], asked: &Asked) -> Result<Listing, NormalizeError> {
    let names: Vec<String> = (1..=texts.len()).map(|number| format!("document {number}")).collect();
    let documents: Vec<Document<'_>> = texts
        .iter()
        .zip(&names)
        .map(|(text, name)| Document { name, bytes: text.as_bytes(), written_at: None })
        .collect();
    listing(&documents, asked)
}

fn prod(whole: Whole) -> Asked {
    Asked { cluster: Some("prod".into()), whole, owned: false }
}

fn list(items: &[&str]) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"List","metadata":{{"resourceVersion":""}},"items":[{}]}}"#, items.join(","))
}

#[test]
fn objects_are_called_by_kind_namespace_and_name_whatever_form_they_come_in() {
    let expected =
        ["k8s::apps/Deployment k8s/prod/shop deployment.apps/shop/web", "k8s::core/Namespace k8s/prod namespace/shop"];
    let of_kubectl = read(&[&list(&[DEPLOYMENT, NAMESPACE])], &prod(Whole::Everywhere)).unwrap();
    assert_eq!(keys(&of_kubectl), expected);
    let apart = read(&[DEPLOYMENT, NAMESPACE], &prod(Whole::Everywhere)).unwrap();
    assert_eq!(apart.resources.keys().collect::<Vec<_>>(), of_kubectl.resources.keys().collect::<Vec<_>>());
    // The API itself leaves kind and version out of the items.
    let bare = DEPLOYMENT.replace(r#""apiVersion":"apps/v1","kind":"Deployment","#, "");
    let of_api = format!(r#"{{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{{}},"items":[{bare}]}}"#);
    let of_api = read(&[&of_api], &prod(Whole::Everywhere)).unwrap();
    assert_eq!(properties(&of_api, "web"), properties(&of_kubectl, "web"));
    let yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, uid: '1'}\nspec:\n  replicas: 2\nstatus:\n  replicas: 2\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata:\n    name: shop\n";
    let of_yaml = read(&[yaml], &prod(Whole::Everywhere)).unwrap();
    assert_eq!(keys(&of_yaml), expected);
    assert_eq!(properties(&of_yaml, "web"), properties(&of_kubectl, "web"));
}

#[test]
fn what_is_missing_is_gone_only_where_someone_says_that_the_list_is_whole() {
    let kind = "k8s::apps/Deployment";
    let texts = [list(&[DEPLOYMENT, NAMESPACE])];
    let texts = [texts[0].as_str()];
    let unsaid = read(&texts, &prod(Whole::Unsaid)).unwrap();
    assert!(extent(&unsaid, kind, "k8s/prod/shop").contains("--all-namespaces"));
    let everywhere = read(&texts, &prod(Whole::Everywhere)).unwrap();
    assert_eq!(extent(&everywhere, kind, "k8s/prod/shop"), "complete");
    assert_eq!(extent(&everywhere, kind, "k8s/prod/a-namespace-that-is-gone"), "complete");
    assert_eq!(extent(&everywhere, "k8s::core/Pod", "k8s/prod/shop"), "", "nobody listed pods");
    let one = read(&texts, &prod(Whole::Namespaces(vec!["shop".into()]))).unwrap();
    assert_eq!(extent(&one, kind, "k8s/prod/shop"), "complete");
    assert_eq!(extent(&one, kind, "k8s/prod/other"), "");
    assert_eq!(extent(&one, "k8s::core/Namespace", "k8s/prod"), "complete");
    let page = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"abc"},"items":[]}"#;
    let cut = read(&[texts[0], page], &prod(Whole::Everywhere)).unwrap();
    assert!(extent(&cut, "k8s::core/Pod", "k8s/prod/shop").contains("next page"));
    let nothing = read(&[&page.replace("abc", "")], &prod(Whole::Everywhere)).unwrap();
    assert_eq!(extent(&nothing, "k8s::core/Pod", "k8s/prod/shop"), "complete");
}

#[test]
fn what_a_controller_made_is_left_out_unless_asked_for() {
    let texts = [list(&[DEPLOYMENT, OWNED])];
    let texts = [texts[0].as_str()];
    let without = read(&texts, &prod(Whole::Everywhere)).unwrap();
    assert_eq!(without.resources.len(), 1);
    let with = read(&texts, &Asked { owned: true, ..prod(Whole::Everywhere) }).unwrap();
    assert_eq!(with.resources.len(), 2);
    assert!(without.coverage.is_another_than(&with.coverage).is_some(), "one cannot be held against the other");
    let error = read(&[OWNED], &prod(Whole::Everywhere)).unwrap_err();
    assert!(error.hint.unwrap().contains("--owned"));
}

#[test]
fn the_values_of_a_secret_are_secret_and_so_is_the_copy_that_kubectl_keeps() {
    let secret =
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"shop"},"data":{"a":"eA=="}}"#;
    let found = read(&[secret], &prod(Whole::Everywhere)).unwrap();
    let patterns: Vec<String> =
        found.resources.values().flat_map(|found| &found.sensitive).map(ToString::to_string).collect();
    assert_eq!(patterns, super::SECRET_PATHS);
    assert!(patterns[2].ends_with(&super::LAST_APPLIED.replace('/', "~1")));
}

#[test]
fn what_has_no_name_is_said_and_keeps_the_list_from_being_whole() {
    let nameless = r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#;
    let found = read(&[&list(&[DEPLOYMENT, nameless])], &prod(Whole::Everywhere)).unwrap();
    assert_eq!(found.problems.len(), 1);
    assert_eq!(found.coverage.counts().0, 0);
    for text in ["{}", r#"{"items":[{}]}"#, "a: 1", "just text", "[1]", r#"{"kind":"PodList","items":3}"#] {
        assert!(normalize(Model::Kubernetes, &[text]).is_err(), "{text}");
    }
}

#[test]
fn names_are_the_ones_that_kubectl_would_print() {
    assert_eq!(object_id("", "Pod", Some("shop"), "web"), "pod/shop/web");
    assert_eq!(
        object_id("rbac.authorization.k8s.io", "ClusterRole", None, "x"),
        "clusterrole.rbac.authorization.k8s.io/x"
    );
    assert_eq!(cluster_name("arn:aws:eks:eu-west-1:1:cluster/prod"), "arn:aws:eks:eu-west-1:1:cluster:prod");
    assert_eq!(cluster_name(""), "-");
    assert!(left_out("", "Event").is_some() && left_out("apps", "Deployment").is_none());
    assert_eq!(
        properties(&read(&[NAMESPACE], &Asked::default()).unwrap(), "shop").get("kind"),
        Some(&Value::from("Namespace"))
    );
}
