//! Guesses that are usually right. Each excuses with its name, and all can be switched off.

use driftline_core::{Pattern, Pointer, Value};

use super::arrays::by_key;
use super::{Found, Walk};

/// Every guess by its name, and what it takes for the same.
pub const GUESSES: &[(&str, &str)] = &[
    ("case", "texts that differ in upper and lower case only"),
    ("order", "lists with the same elements in another order"),
    ("keyed subset", "lists of named elements to which the service adds its own"),
    ("attached by another resource", "elements that resources of their own add to a list"),
    ("the service's own where nothing was declared", "a list that was declared empty"),
    ("ARN or name", "an ARN, and the name it ends in"),
    ("key alias", "an alias, and the key that it may stand for"),
    ("version prefix", "a version, and a longer one that begins with it; LATEST, and any version"),
    ("rate", "rate() in other units"),
    ("rounded to the hour", "a time, and the hour it is in"),
    ("trailing sign", "a text with and without a dot or slash at its end"),
    ("white space", "texts that differ in white space only"),
    ("key comment", "public keys with another comment"),
    ("names of members", "members in other capitals, and comparisons by their other names"),
];

/// The guess that explains why two values differ, unless it is switched off.
pub(super) fn explains(walk: &Walk<'_>, path: &Pointer, declared: &Value, live: &Value) -> Option<&'static str> {
    guess(walk, path, declared, live).filter(|name| !walk.options.without.iter().any(|without| without == name))
}

fn guess(walk: &Walk<'_>, path: &Pointer, declared: &Value, live: &Value) -> Option<&'static str> {
    match (declared, live) {
        (Value::Array(left), Value::Array(right)) => arrays(walk, path, left, right),
        (Value::Object(left), Value::Object(right)) => members(walk, path, left, right),
        (Value::Number(left), Value::Number(right)) => {
            // Some services keep times by the hour.
            let (left, right) = (left.as_integer()?, right.as_integer()?);
            (left > 1_000_000_000 && left - left % 3600 == right).then_some("rounded to the hour")
        }
        (Value::String(left), Value::String(right)) => texts(left, right),
        _ => None,
    }
}

fn arrays(walk: &Walk<'_>, path: &Pointer, declared: &[Value], live: &[Value]) -> Option<&'static str> {
    // Tags are compared by key already: what is left is a difference.
    if walk.are_tags(path, declared) {
        return None;
    }
    let mut found = Found::default();
    walk.bag(&mut path.clone(), declared, live, &mut found);
    if found.differences.is_empty() {
        return Some("order");
    }
    // In a list that others add to, what they may add is known: a rule that opens a group to an address is not it,
    // least of all where none was declared.
    if is_attached_to(walk, path) {
        return attached(walk, path, declared, live).then_some("attached by another resource");
    }
    if declared.is_empty() {
        return Some("the service's own where nothing was declared");
    }
    let only_added = found.differences.iter().all(|difference| difference.expected.is_none());
    // A person adds one element or two; a service that lists its own lists many.
    let filled = is_filled(walk, path) || found.differences.len() >= A_FEW;
    (only_added && filled && by_key(declared).is_some() && by_key(live).is_some()).then_some("keyed subset")
}

const A_FEW: usize = 3;

/// Lists in which a service puts elements of its own.
const FILLED: &[(&str, &str)] = &[
    ("AWS::Cognito::UserPool", "/Schema"),
    ("AWS::Cognito::UserPoolUser", "/UserAttributes"),
    ("AWS::RDS::OptionGroup", "/OptionConfigurations/*/OptionSettings"),
];

fn is_filled(walk: &Walk<'_>, path: &Pointer) -> bool {
    FILLED
        .iter()
        .any(|(kind, at)| *kind == walk.facts.name && at.parse::<Pattern>().is_ok_and(|pattern| pattern.matches(path)))
}

/// Lists to which resources of their own add elements: type, path, and what an element has that is added so.
const ATTACHED: &[(&str, &str, Option<&str>)] = &[
    ("AWS::EC2::Instance", "/BlockDeviceMappings", None),
    ("AWS::EC2::Instance", "/Volumes", None),
    // A rule that names a group or a list, not an address: those come as resources of their own, or are not added.
    ("AWS::EC2::SecurityGroup", "/SecurityGroupIngress", Some("SourceSecurityGroupId SourcePrefixListId")),
    ("AWS::EC2::SecurityGroup", "/SecurityGroupEgress", Some("DestinationSecurityGroupId DestinationPrefixListId")),
    ("AWS::IAM::ManagedPolicy", "/Roles", None),
    ("AWS::IAM::ManagedPolicy", "/Users", None),
    ("AWS::IAM::ManagedPolicy", "/Groups", None),
    ("AWS::IAM::Policy", "/Roles", None),
    ("AWS::IAM::Policy", "/Users", None),
    ("AWS::IAM::Policy", "/Groups", None),
];

/// Whether other resources add to this list.
fn is_attached_to(walk: &Walk<'_>, path: &Pointer) -> bool {
    let text = path.to_string();
    ATTACHED.iter().any(|(kind, at, _)| *kind == walk.facts.name && *at == text)
}

/// Whether all that differs are elements that other resources attach.
fn attached(walk: &Walk<'_>, path: &Pointer, declared: &[Value], live: &[Value]) -> bool {
    let text = path.to_string();
    let Some((_, _, marks)) = ATTACHED.iter().find(|(kind, at, _)| *kind == walk.facts.name && *at == text) else {
        return false;
    };
    let mut found = Found::default();
    walk.bag(&mut path.clone(), declared, live, &mut found);
    found.differences.iter().all(|difference| {
        difference.expected.is_none()
            && marks.is_none_or(|marks| {
                let has = |name: &str| difference.actual.as_ref().is_some_and(|value| value.get(name).is_some());
                marks.split(' ').any(has)
            })
    })
}

/// Comparisons that a service takes by one name and tells by another.
const OPERATORS: &[(&str, &str)] = &[
    ("Eq", "Equals"),
    ("Neq", "NotEquals"),
    ("Gt", "GreaterThan"),
    ("Gte", "GreaterThanOrEqual"),
    ("Lt", "LessThan"),
    ("Lte", "LessThanOrEqual"),
];

/// The same members under other names.
fn members(
    walk: &Walk<'_>,
    path: &Pointer,
    declared: &std::collections::BTreeMap<String, Value>,
    live: &std::collections::BTreeMap<String, Value>,
) -> Option<&'static str> {
    let mut found = Found::default();
    let mut renamed = false;
    for (name, value) in declared {
        let same = |other: &str| {
            other.to_lowercase() == name.to_lowercase()
                || OPERATORS
                    .iter()
                    .any(|(short, long)| (*short, *long) == (name, other) || (*long, *short) == (name, other))
        };
        let other = live.iter().find(|(other, _)| same(other));
        renamed |= other.is_some_and(|(other, _)| other != name);
        walk.values(&mut path.child(name.as_str()), value, other.map(|(_, value)| value), &mut found);
    }
    (renamed && found.differences.is_empty()).then_some("names of members")
}

fn texts(declared: &str, live: &str) -> Option<&'static str> {
    let folded = |text: &str| text.to_lowercase();
    if folded(declared) == folded(live) {
        return Some("case");
    }
    if declared.trim_end_matches(['.', '/']) == live.trim_end_matches(['.', '/']) {
        return Some("trailing sign");
    }
    if squeezed(declared) == squeezed(live) {
        return Some("white space");
    }
    if names_the_other(declared, live) || names_the_other(live, declared) {
        return Some("ARN or name");
    }
    // Which key an alias stands for is not to be seen here.
    if declared.starts_with("alias/") && (live.contains(":kms:") || live.len() == 36) {
        return Some("key alias");
    }
    if is_version_of(declared, live) || is_version_of(live, declared) {
        return Some("version prefix");
    }
    if rate(declared).is_some_and(|seconds| rate(live) == Some(seconds)) {
        return Some("rate");
    }
    if key_material(declared).is_some_and(|key| key_material(live) == Some(key)) {
        return Some("key comment");
    }
    None
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace()).collect()
}

/// Whether one is a name and the other an ARN, or a path, that ends in it.
fn names_the_other(name: &str, arn: &str) -> bool {
    let whole = arn.strip_suffix(name).is_some_and(|lead| lead.ends_with([':', '/']));
    let is_number = |version: &str| version == "$LATEST" || version.bytes().all(|byte| byte.is_ascii_digit());
    let unversioned = arn.rsplit_once(':').filter(|(_, version)| is_number(version)).map(|(lead, _)| lead);
    let versioned = unversioned.and_then(|lead| lead.strip_suffix(name)).is_some_and(|lead| lead.ends_with([':', '/']));
    !name.is_empty() && arn.starts_with("arn:") && (whole || versioned)
}

/// `5.0` asks for whatever `5.0.*` there is, and `LATEST` for any.
fn is_version_of(declared: &str, live: &str) -> bool {
    let is_version = |text: &str| text.starts_with(|char: char| char.is_ascii_digit());
    let asked = is_version(declared) && live.strip_prefix(declared).is_some_and(|rest| rest.starts_with('.'));
    asked || (declared.eq_ignore_ascii_case("latest") && is_version(live))
}

/// A rate in seconds.
fn rate(text: &str) -> Option<u64> {
    let inner = text.trim().strip_prefix("rate(")?.strip_suffix(')')?;
    let (count, unit) = inner.trim().split_once(' ')?;
    let seconds = match unit.trim().trim_end_matches('s') {
        "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => 86_400,
        _ => return None,
    };
    Some(count.trim().parse::<u64>().ok()? * seconds)
}

/// A public key without its comment.
fn key_material(text: &str) -> Option<(&str, &str)> {
    let mut parts = text.split_whitespace();
    let (kind, key) = (parts.next()?, parts.next()?);
    (kind.starts_with("ssh-") || kind.starts_with("ecdsa-")).then_some((kind, key))
}
