//! What an object's annotations, its namespace's and the operator's flags say together.

use std::collections::BTreeMap;
use std::time::Duration;

use driftline_core::Pattern;

use crate::crd::Ignore;
use crate::decision::Policy;
use crate::managed::{IgnoreRule, Managed};

pub const POLICY: &str = "driftline.dev/drift-policy";
pub const IGNORE: &str = "driftline.dev/ignore";
pub const RESYNC: &str = "driftline.dev/resync";
pub const RECONCILE_AT: &str = "driftline.dev/reconcile-at";
pub const ADOPT: &str = "driftline.dev/adopt";

/// What holds where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub policy: Policy,
    pub resync: Duration,
}

/// What holds for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub policy: Policy,
    pub ignore: Vec<IgnoreRule>,
    pub resync: Duration,
}

/// No object is looked at more often than this: each look is a call to AWS.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

impl Settings {
    /// The object goes before its namespace, and that before the flag. What cannot be read is an error, never a
    /// default: somebody meant something by it.
    pub fn of<K: Managed>(
        object: &K,
        namespace: &BTreeMap<String, String>,
        defaults: Defaults,
    ) -> Result<Self, String> {
        let none = BTreeMap::new();
        let own = object.meta().annotations.as_ref().unwrap_or(&none);
        let read = |text: &str, of: &str| {
            text.parse::<Policy>().map_err(|error| format!("the annotation {POLICY} of the {of}: {error}"))
        };
        let policy = match (own.get(POLICY), object.own_policy(), namespace.get(POLICY)) {
            (Some(text), _, _) => read(text, "object")?,
            (None, Some(policy), _) => policy,
            (None, None, Some(text)) => read(text, "namespace")?,
            (None, None, None) => defaults.policy,
        };
        let mut ignore = rules(object.own_ignores(), "spec.ignore")?;
        if let Some(text) = own.get(IGNORE) {
            let written: Vec<Ignore> = serde_json::from_str(text).map_err(|error| {
                format!(r#"the annotation {IGNORE} is not a list like [{{"path":"/enabled","reason":"why"}}]: {error}"#)
            })?;
            ignore.extend(rules(&written, "annotation driftline.dev/ignore")?);
        }
        let resync = match own.get(RESYNC) {
            Some(text) => duration(text).map_err(|error| format!("the annotation {RESYNC}: {error}"))?,
            None => defaults.resync,
        };
        Ok(Self { policy, ignore, resync })
    }
}

fn rules(written: &[Ignore], origin: &'static str) -> Result<Vec<IgnoreRule>, String> {
    let rule = |one: &Ignore| {
        let path: Pattern = one.path.parse().map_err(|error| format!("{origin}: {error}"))?;
        if path.names_everything() {
            return Err(format!("{origin}: `{}` would ignore everything; suspend is for that", one.path));
        }
        if one.reason.trim().is_empty() {
            return Err(format!("{origin}: `{}` has no reason", one.path));
        }
        Ok(IgnoreRule { path, reason: one.reason.clone(), origin })
    };
    written.iter().map(rule).collect()
}

/// `90s`, `5m`, `2h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a length of time of at least a second: write it like 90s, 5m or 2h");
    let split = text.find(|char: char| !char.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..split].parse().map_err(|_| wrong())?;
    let unit = match &text[split..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(wrong()),
    };
    let length = Duration::from_secs(number.checked_mul(unit).ok_or_else(wrong)?);
    if length < SHORTEST_RESYNC { Err(wrong()) } else { Ok(length) }
}

/// A length of time near this one, so that objects that began together do not stay together. The same seed gives the
/// same length: between nine and eleven tenths.
pub fn jittered(length: Duration, seed: &str, moment: i64) -> Duration {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in seed.bytes().chain(moment.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // The high bits of this hash are the well mixed ones.
    let thousandth = u32::try_from((hash >> 32) % 201).unwrap_or_default();
    length * (900 + thousandth) / 1000
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::crd::{DistributionTenant, DistributionTenantSpec};

    const DEFAULTS: Defaults = Defaults { policy: Policy::Enforce, resync: Duration::from_mins(5) };

    fn object(annotations: &[(&str, &str)]) -> DistributionTenant {
        let mut object = DistributionTenant::new("acme", DistributionTenantSpec::default());
        object.metadata.annotations = Some(map(annotations));
        object
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_object_goes_before_its_namespace_and_that_before_the_flag() {
        let policy = |own: &[(&str, &str)], namespace: &[(&str, &str)]| {
            Settings::of(&object(own), &map(namespace), DEFAULTS).map(|settings| settings.policy)
        };
        assert_eq!(policy(&[], &[]), Ok(Policy::Enforce));
        assert_eq!(policy(&[], &[(POLICY, "suspend")]), Ok(Policy::Suspend));
        assert_eq!(policy(&[(POLICY, "report")], &[(POLICY, "suspend")]), Ok(Policy::Report));
        assert!(policy(&[(POLICY, "off")], &[]).unwrap_err().contains("`off` is not a drift policy"));
        assert!(policy(&[], &[(POLICY, "Report")]).unwrap_err().contains("of the namespace"));
    }

    #[test]
    fn an_ignore_rule_that_cannot_be_meant_is_an_error() {
        let settings = |text: &str| Settings::of(&object(&[(IGNORE, text)]), &BTreeMap::new(), DEFAULTS);
        let good = settings(r#"[{"path":"/customizations/webAcl","reason":"set by the security team"}]"#).unwrap();
        assert_eq!(good.ignore.len(), 1);
        for bad in [
            "/enabled",
            r#"["/enabled"]"#,
            r#"[{"path":"/enabled"}]"#,
            r#"[{"path":"enabled","reason":"x"}]"#,
            r#"[{"path":"/**","reason":"x"}]"#,
            r#"[{"path":"/enabled","reason":" "}]"#,
            r#"[{"path":"/enabled","reason":"x","until":"y"}]"#,
        ] {
            assert!(settings(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them_and_scattered() {
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        for bad in ["", "5", "m", "0s", "5d", "-5m", "99999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        let length = Duration::from_secs(1000);
        let spread: Vec<Duration> = (0..500).map(|at| jittered(length, &format!("uid-{at}"), 7)).collect();
        assert!(spread.iter().all(|one| (900..=1100).contains(&one.as_secs())));
        let early = spread.iter().filter(|one| one.as_secs() < 1000).count();
        assert!((150..350).contains(&early), "{early} of 500 are early");
    }
}
