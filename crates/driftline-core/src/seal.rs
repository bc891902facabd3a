//! Secrets, kept as keyed digests: "it changed", never "to what".

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::canonical::Properties;
use crate::pointer::{Pattern, Pointer};
use crate::rule::Glob;
use crate::value::Value;

/// The one member of an object that stands for a secret.
pub const SEALED: &str = "$sealed";

/// The key that digests are made with.
#[derive(Clone)]
pub struct SealKey([u8; 32]);

impl SealKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Names the key without telling it, so that a store can notice it was given another one.
    pub fn fingerprint(&self) -> String {
        let digest = Sha256::new_with_prefix("driftline/seal-key/v1\0").chain_update(self.0).finalize();
        digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealKey({})", self.fingerprint())
    }
}

/// Where secrets are: in resources of these types, at these places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPath {
    pub kind: Glob,
    pub path: Pattern,
}

pub fn is_sealed(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.len() == 1 && members.contains_key(SEALED))
}

/// Whether there is anything at the places that `patterns` name.
pub fn finds_any(value: &Value, patterns: &[&Pattern]) -> bool {
    fn find(value: &Value, path: &mut Pointer, patterns: &[&Pattern]) -> bool {
        if patterns.iter().any(|pattern| pattern.matches(path)) {
            return true;
        }
        let mut beneath = |segment: &str, child: &Value| {
            path.push(segment);
            let found = find(child, path, patterns);
            path.pop();
            found
        };
        match value {
            Value::Object(members) => members.iter().any(|(name, member)| beneath(name, member)),
            Value::Array(items) => items.iter().enumerate().any(|(at, item)| beneath(&at.to_string(), item)),
            _ => false,
        }
    }
    find(value, &mut Pointer::root(), patterns)
}

/// Replaces every value that one of `patterns` names by its keyed digest; says how many there were.
pub fn seal(value: &mut Value, patterns: &[&Pattern], key: &SealKey) -> usize {
    let mut path = Pointer::root();
    seal_at(value, &mut path, patterns, key)
}

fn seal_at(value: &mut Value, path: &mut Pointer, patterns: &[&Pattern], key: &SealKey) -> usize {
    if patterns.iter().any(|pattern| pattern.matches(path)) {
        if is_sealed(value) {
            return 0;
        }
        let digest = digest(value, path, key);
        *value = Value::from([(SEALED, Value::from(digest))]);
        return 1;
    }
    let mut sealed = 0;
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                path.push(name.as_str());
                sealed += seal_at(member, path, patterns, key);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                path.push(at.to_string());
                sealed += seal_at(item, path, patterns, key);
                path.pop();
            }
        }
        _ => {}
    }
    sealed
}

/// The path is part of the digest, so that equal secrets in two places do not show as equal. Numbers in it are
/// left out: an element that moves inside its array keeps its digest.
fn digest(value: &Value, path: &Pointer, key: &SealKey) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of any length");
    mac.update(b"driftline/seal/v1\0");
    for segment in path.segments() {
        let stable = if segment.bytes().all(|byte| byte.is_ascii_digit()) { "*" } else { segment };
        mac.update(stable.as_bytes());
        mac.update(b"\0");
    }
    mac.update(Properties::new(value).as_ref().bytes());
    mac.finalize().into_bytes()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn sealed(text: &str, pattern: &str) -> Value {
        let mut value: Value = serde_json::from_str(text).unwrap();
        seal(&mut value, &[&pattern.parse().unwrap()], &SealKey::new([7; 32]));
        value
    }

    #[test]
    fn a_secret_shows_that_it_changed_and_never_what_it_is() {
        let a = sealed(r#"{"env":{"K":"hunter2"},"n":1}"#, "/env/*");
        let same = sealed(r#"{"n":1,"env":{"K":"hunter2"}}"#, "/env/*");
        let other = sealed(r#"{"env":{"K":"hunter3"},"n":1}"#, "/env/*");
        assert_eq!(a, same);
        assert_ne!(a, other);
        assert!(!a.to_json().contains("hunter2"));
        assert_eq!(a.get("n"), Some(&Value::from(1i64)));
    }

    #[test]
    fn equal_secrets_in_two_places_do_not_look_equal() {
        let value = sealed(r#"{"a":"x","b":"x"}"#, "/*");
        assert_ne!(value.get("a"), value.get("b"));
    }

    #[test]
    fn sealing_twice_changes_nothing() {
        let key = SealKey::new([7; 32]);
        let mut value = sealed(r#"{"a":"x"}"#, "/a");
        let once = value.clone();
        assert_eq!(seal(&mut value, &[&"/a".parse().unwrap()], &key), 0);
        assert_eq!(value, once);
    }
}
