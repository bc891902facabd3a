//! Where the secrets of a resource are: as its document marks them, and where they always are.

use driftline_core::{Pattern, Value};

use super::room::Room;

/// Member names and indices, from the top of the attributes down.
pub(super) type Path = Vec<String>;

/// Attributes that are secret by nature: not every version of Terraform and of its providers marks them. A type that
/// ends in `*` stands for every type that begins so; a segment `*` for every member or element.
const BY_NATURE: &[(&str, &str)] = &[
    ("aws_acm_certificate", "/private_key"),
    ("aws_api_gateway_api_key", "/value"),
    ("aws_appsync_api_key", "/key"),
    ("aws_cloudwatch_event_connection", "/auth_parameters"),
    ("aws_codebuild_source_credential", "/token"),
    ("aws_codebuild_webhook", "/secret"),
    ("aws_cognito_identity_provider", "/provider_details/client_secret"),
    ("aws_cognito_user", "/password"),
    ("aws_cognito_user", "/temporary_password"),
    ("aws_cognito_user_pool_client", "/client_secret"),
    ("aws_db_instance", "/password"),
    ("aws_directory_service_directory", "/password"),
    ("aws_dms_endpoint", "/password"),
    ("aws_docdb_cluster", "/master_password"),
    ("aws_elasticache_replication_group", "/auth_token"),
    ("aws_elasticache_user", "/passwords"),
    ("aws_elasticache_user", "/authentication_mode/*/passwords"),
    ("aws_fsx_windows_file_system", "/self_managed_active_directory/*/password"),
    ("aws_iam_access_key", "/secret"),
    ("aws_iam_access_key", "/ses_smtp_password_v4"),
    ("aws_iam_server_certificate", "/private_key"),
    ("aws_iam_user_login_profile", "/password"),
    ("aws_iot_certificate", "/private_key"),
    ("aws_lambda_function", "/environment/*/variables/*"),
    ("aws_lightsail_key_pair", "/private_key"),
    ("aws_mq_broker", "/user/*/password"),
    ("aws_neptune_cluster", "/master_password"),
    ("aws_opensearch_domain", "/advanced_security_options/*/master_user_options/*/master_user_password"),
    ("aws_elasticsearch_domain", "/advanced_security_options/*/master_user_options/*/master_user_password"),
    ("aws_rds_cluster", "/master_password"),
    ("aws_redshift_cluster", "/master_password"),
    ("aws_redshiftserverless_namespace", "/admin_user_password"),
    ("aws_secretsmanager_secret_version", "/secret_binary"),
    ("aws_secretsmanager_secret_version", "/secret_string"),
    ("aws_ssm_parameter", "/insecure_value"),
    ("aws_ssm_parameter", "/value"),
    ("aws_transfer_server", "/host_key"),
    ("aws_vpn_connection", "/customer_gateway_configuration"),
    ("aws_vpn_connection", "/tunnel1_preshared_key"),
    ("aws_vpn_connection", "/tunnel2_preshared_key"),
    ("azurerm_key_vault_secret", "/value"),
    ("google_service_account_key", "/private_key"),
    ("kubernetes_secret*", "/binary_data"),
    ("kubernetes_secret*", "/data"),
    ("local_sensitive_file", "/content"),
    ("local_sensitive_file", "/content_base64"),
    ("random_password", "/bcrypt_hash"),
    ("random_password", "/result"),
    ("tls_private_key", "/private_key_openssh"),
    ("tls_private_key", "/private_key_pem"),
    ("tls_private_key", "/private_key_pem_pkcs8"),
    ("tls_self_signed_cert", "/private_key_pem"),
    ("tls_cert_request", "/private_key_pem"),
    ("tls_locally_signed_cert", "/ca_private_key_pem"),
    ("vault_*", "/client_token"),
    ("vault_*", "/data"),
    ("vault_*", "/data_json"),
    ("vault_*", "/secret_id"),
    ("vault_*", "/token"),
    ("vault_*", "/wrapping_token"),
];

/// How names end that say of themselves that they are secret. Providers forget to mark some, and state files list only
/// what the configuration marked.
const BY_NAME: &[&str] = &[
    "accesstoken",
    "apikey",
    "authtoken",
    "connectionstring",
    "passphrase",
    "passwd",
    "password",
    "presharedkey",
    "privatekey",
    "privatekeypem",
    "secret",
    "secretaccesskey",
    "secretkey",
    "secretstring",
    "token",
];

/// Paths on their way; what there is no room for is left out, and the room knows.
struct Found<'r> {
    paths: Vec<Path>,
    room: &'r mut Room,
}

impl<'r> Found<'r> {
    fn new(room: &'r mut Room) -> Self {
        Self { paths: Vec::new(), room }
    }

    fn push(&mut self, path: &Path) {
        if self.room.take(path.iter().map(String::as_str)) {
            self.paths.push(path.clone());
        }
    }
}

/// What a mirror of the values marks with `true`. Anything that is no mark at all is taken for one.
pub(super) fn mirrored(mark: &Value, room: &mut Room) -> Vec<Path> {
    fn walk(mark: &Value, path: &mut Path, out: &mut Found<'_>) {
        match mark {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) | Value::Number(_) | Value::String(_) => out.push(path),
            Value::Array(items) => each(items.iter().enumerate().map(|(at, item)| (at.to_string(), item)), path, out),
            Value::Object(members) => each(members.iter().map(|(name, member)| (name.clone(), member)), path, out),
        }
    }
    fn each<'v>(children: impl Iterator<Item = (String, &'v Value)>, path: &mut Path, out: &mut Found<'_>) {
        for (segment, child) in children {
            path.push(segment);
            walk(child, path, out);
            path.pop();
        }
    }
    let mut out = Found::new(room);
    walk(mark, &mut Path::new(), &mut out);
    out.paths
}

/// What a state file's `sensitive_attributes` name. A path that is understood in part stands for all beneath that
/// part; `None` when one is not understood at all, and anything may be secret.
pub(super) fn listed(marks: &Value) -> Option<Vec<Path>> {
    let Value::Array(paths) = marks else {
        return matches!(marks, Value::Null).then(Vec::new);
    };
    paths
        .iter()
        .map(|path| {
            let steps = match path {
                Value::Array(steps) => steps.as_slice(),
                single => std::slice::from_ref(single),
            };
            let understood: Path = steps.iter().map_while(segment).collect();
            (!understood.is_empty()).then_some(understood)
        })
        .collect()
}

fn segment(step: &Value) -> Option<String> {
    let value = match step {
        Value::Object(members) => match members.get("value")? {
            // The key of an index is wrapped with its type.
            Value::Object(wrapped) => wrapped.get("value")?,
            value => value,
        },
        plain => plain,
    };
    match value {
        Value::String(name) => Some(name.clone()),
        Value::Number(number) => number.as_integer().map(|index| index.to_string()),
        _ => None,
    }
}

/// The marks, and the same marks on attributes that repeat what another holds. Terraform does not mark those.
pub(super) fn with_echoes(kind: &str, mut paths: Vec<Path>) -> Vec<Path> {
    const ECHOES: &[(&str, &str, &str)] = &[("terraform_data", "input", "output")];
    for (_, from, to) in ECHOES.iter().filter(|(echoing, ..)| *echoing == kind) {
        let echo = |path: &Path| {
            let (first, rest) = path.split_first()?;
            (first == from).then(|| std::iter::once((*to).to_owned()).chain(rest.iter().cloned()).collect())
        };
        let echoes: Vec<Path> = paths.iter().filter_map(echo).collect();
        paths.extend(echoes);
    }
    paths
}

/// What is secret in attributes of this type, whoever marked it.
pub(super) fn by_nature(kind: &str, attributes: &Value, room: &mut Room) -> Vec<Path> {
    let mut out = Found::new(room);
    for pointer in pointers(kind) {
        let steps: Vec<&str> = pointer.split('/').skip(1).collect();
        find(attributes, &steps, &mut Path::new(), &mut out);
    }
    out.paths
}

/// The same in the form that states of Terraform 0.11 have: one text for each leaf, named by its path with dots.
pub(super) fn by_nature_flat(kind: &str, attributes: &Value) -> Vec<Path> {
    let names = attributes.as_object().into_iter().flatten().map(|(name, _)| name);
    let is_secret = |name: &&String| {
        let segments: Vec<&str> = name.split('.').collect();
        pointers(kind).any(|pointer| {
            let steps: Vec<&str> = pointer.split('/').skip(1).collect();
            segments.len() >= steps.len()
                && steps.iter().zip(&segments).all(|(step, segment)| *step == "*" || step == segment)
        })
    };
    names.filter(is_secret).map(|name| vec![name.clone()]).collect()
}

fn pointers(kind: &str) -> impl Iterator<Item = &'static str> {
    BY_NATURE.iter().filter_map(move |(name, pointer)| {
        let is_meant = match name.strip_suffix('*') {
            Some(lead) => kind.starts_with(lead),
            None => *name == kind,
        };
        is_meant.then_some(*pointer)
    })
}

fn find(value: &Value, steps: &[&str], path: &mut Path, out: &mut Found<'_>) {
    let Some((first, rest)) = steps.split_first() else {
        if *value != Value::Null {
            out.push(path);
        }
        return;
    };
    let mut beneath = |segment: String, child: &Value| {
        if *first == "*" || *first == segment {
            path.push(segment);
            find(child, rest, path, out);
            path.pop();
        }
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| beneath(name.clone(), member)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| beneath(at.to_string(), item)),
        _ => {}
    }
}

/// What is secret by its name, marked or not.
pub(crate) fn by_name(attributes: &Value, room: &mut Room) -> Vec<Path> {
    fn walk(value: &Value, path: &mut Path, out: &mut Found<'_>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    path.push(name.clone());
                    match says_secret(name) && is_text(member) {
                        true => out.push(path),
                        false => walk(member, path, out),
                    }
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    path.push(at.to_string());
                    walk(item, path, out);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    let mut out = Found::new(room);
    walk(attributes, &mut Path::new(), &mut out);
    out.paths
}

fn says_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    BY_NAME.iter().any(|end| plain.ends_with(end))
}

/// A text, or several. A block of this name is looked into: it may tell where a secret is kept, and not the secret.
fn is_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
        Value::Array(items) => items.iter().any(is_text),
        _ => false,
    }
}

/// The patterns of what `paths` name in these attributes.
///
/// A mark may go on where the value does not: then what holds it is sealed, for the mark was put there for a reason.
pub(crate) fn patterns(attributes: &Value, paths: &[Path]) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for path in paths {
        if path.is_empty() {
            return everything(attributes);
        }
        patterns.extend(deepest(attributes, path).map(Pattern::exactly));
    }
    patterns.sort();
    patterns.dedup();
    patterns
}

/// Every attribute, each by itself.
pub(crate) fn everything(attributes: &Value) -> Vec<Pattern> {
    attributes.as_object().into_iter().flatten().map(|(name, _)| Pattern::exactly([name.as_str()])).collect()
}

fn deepest(attributes: &Value, path: &Path) -> Option<Path> {
    let mut at = attributes;
    let mut walked = Path::new();
    for segment in path {
        let mut next = child(at, segment);
        // A state file wraps an attribute whose type is not fixed as `{value, type}`, and its marks do not know.
        if next.is_none()
            && let Some(inner) = wrapped(at)
            && !walked.is_empty()
        {
            walked.push("value".to_owned());
            at = inner;
            next = child(at, segment);
        }
        let Some(found) = next else { break };
        walked.push(segment.clone());
        at = found;
    }
    (!walked.is_empty() && *at != Value::Null).then_some(walked)
}

fn child<'v>(value: &'v Value, segment: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => members.get(segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    }
}

/// What is inside of `{value, type}`.
pub(super) fn wrapped(value: &Value) -> Option<&Value> {
    value.as_object().filter(|members| members.len() == 2 && members.contains_key("type"))?.get("value")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn room() -> Room {
        Room::beside(1000)
    }

    fn shown(paths: &[Path]) -> Vec<String> {
        paths.iter().map(|path| path.join("/")).collect()
    }

    #[test]
    fn every_shape_of_a_mark_is_understood_or_seals_everything() {
        for (marks, expected) in [
            ("null", Some(vec![])),
            ("[]", Some(vec![])),
            (r#"[[{"type":"get_attr","value":"password"}]]"#, Some(vec!["password"])),
            (r#"[{"type":"get_attr","value":"password"}]"#, Some(vec!["password"])),
            (r#"["password",["a","b"]]"#, Some(vec!["password", "a/b"])),
            (
                r#"[[{"type":"get_attr","value":"a"},{"type":"index","value":{"value":1,"type":"number"}},
                     {"type":"index","value":{"value":"k/*","type":"string"}}]]"#,
                Some(vec!["a/1/k/*"]),
            ),
            (r#"[[{"type":"get_attr","value":"a"},{"type":"splat"}]]"#, Some(vec!["a"])),
            (r#"[[{"type":"splat"}]]"#, None),
            ("[[]]", None),
            ("{}", None),
            ("true", None),
        ] {
            let paths = listed(&parse(marks));
            assert_eq!(
                paths.as_deref().map(shown),
                expected.map(|it| it.into_iter().map(str::to_owned).collect()),
                "{marks}"
            );
        }
    }

    #[test]
    fn a_mark_beyond_the_value_seals_what_holds_it() {
        let attributes = parse(r#"{"a":{"value":{"k":["x"]},"type":["object",{}]},"b":"text","c":null,"d":{"e":1}}"#);
        for (path, expected) in [
            (vec!["a", "k", "0"], Some("a/value/k/0")),
            (vec!["b", "deep"], Some("b")),
            (vec!["c"], None),
            (vec!["gone"], None),
            (vec!["d", "other"], Some("d")),
        ] {
            let path: Path = path.into_iter().map(str::to_owned).collect();
            assert_eq!(deepest(&attributes, &path).map(|it| it.join("/")).as_deref(), expected, "{path:?}");
        }
        assert_eq!(patterns(&attributes, &[Path::new()]).len(), 4, "a mark on the whole seals every attribute");
    }

    #[test]
    fn a_mirror_marks_with_true() {
        let mirror = parse(r#"{"input":{"a":[false,true,{"k/*":true}]},"output":{"a":[false,false,{}]},"odd":"yes"}"#);
        assert_eq!(shown(&mirrored(&mirror, &mut room())), ["input/a/1", "input/a/2/k/*", "odd"]);
        assert_eq!(mirrored(&parse("true"), &mut room()), [Path::new()]);
        assert!(mirrored(&parse("false"), &mut room()).is_empty());
    }

    #[test]
    fn what_is_secret_by_nature_is_found_in_both_forms() {
        let nested = parse(r#"{"environment":[{"variables":{"A":"1","B":"2"}}],"timeout":3}"#);
        assert_eq!(
            shown(&by_nature("aws_lambda_function", &nested, &mut room())),
            ["environment/0/variables/A", "environment/0/variables/B"]
        );
        let flat = parse(r#"{"environment.0.variables.A":"1","environment.#":"1","timeout":"3"}"#);
        assert_eq!(shown(&by_nature_flat("aws_lambda_function", &flat)), ["environment.0.variables.A"]);
        assert_eq!(shown(&by_nature("kubernetes_secret_v1", &parse(r#"{"data":{"a":"b"}}"#), &mut room())), ["data"]);
        assert!(
            by_nature("aws_db_instance", &parse(r#"{"password":null}"#), &mut room()).is_empty(),
            "nothing is not a secret"
        );
    }

    #[test]
    fn names_that_say_secret_are_taken_at_their_word() {
        let attributes = parse(
            r#"{"db_password":"x","nested":[{"clientSecret":"y"}],"secret_arn":"arn","password_policy":{"min":8},
                "api_token":"","rotate_secret":true,"old_password":["a","b"],
                "user_secret":[{"secret_arn":"arn","private_key":"z"}]}"#,
        );
        assert_eq!(
            shown(&by_name(&attributes, &mut room())),
            ["db_password", "nested/0/clientSecret", "old_password", "user_secret/0/private_key"]
        );
    }
}
