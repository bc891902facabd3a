//! What Terraform's types are called elsewhere, as data, so that Terraform's bucket is the observed bucket.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::parts::{PART_IDS, PARTS};
use super::things::THINGS;

/// How resources of a Terraform type are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// A thing that other observers see, too.
    Thing(Thing),
    /// A setting of a thing, or a tie between two: nobody else lists it by itself. It lives where things of the type
    /// `parent` live, and the attributes `ids` tell it from others of its type.
    Part { parent: &'static str, ids: &'static [&'static str] },
    /// One record set of a hosted zone.
    Record,
    /// It exists in Terraform alone.
    Local,
    /// Nobody wrote a row for it yet.
    Unknown,
}

/// A thing in AWS, by the type that Cloud Control has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thing {
    pub kind: &'static str,
    /// The attribute with its own ARN; empty where there is none, or where others do not use it.
    pub arn: &'static str,
    /// The attributes that its id is made of where the ARN is missing, in the order that Cloud Control has them. None
    /// where only the ARN names it.
    pub ids: &'static [&'static str],
}

/// Types of providers that make nothing outside Terraform: how their names begin.
const LOCAL: &[&str] = &[
    "archive_",
    "assert_",
    "cloudinit_",
    "external_",
    "local_",
    "null_",
    "random_",
    "template_",
    "terraform_",
    "time_",
    "tls_",
];

static BY_TYPE: LazyLock<BTreeMap<&str, Naming>> = LazyLock::new(|| {
    let things = THINGS.iter().map(|&(name, kind, arn, ids)| (name, Naming::Thing(Thing { kind, arn, ids })));
    let parts = PARTS.iter().flat_map(|&(parent, rows)| {
        rows.iter().map(move |&name| {
            let ids = PART_IDS.iter().find(|(part, _)| *part == name).map_or(&["id"][..], |(_, ids)| ids);
            (name, Naming::Part { parent, ids })
        })
    });
    things.chain(parts).chain([("aws_route53_record", Naming::Record)]).collect()
});

/// How resources of this Terraform type are named.
pub(super) fn naming(kind: &str) -> Naming {
    match BY_TYPE.get(kind) {
        Some(naming) => *naming,
        None if LOCAL.iter().any(|lead| kind.starts_with(lead)) => Naming::Local,
        None => Naming::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::{Whereabouts, arn, canonical_kind};

    #[test]
    fn every_type_has_one_row() {
        let parts: usize = PARTS.iter().map(|(_, rows)| rows.len()).sum();
        assert_eq!(BY_TYPE.len(), THINGS.len() + parts + 1, "a type is in the tables twice");
        assert!(THINGS.is_sorted_by_key(|row| row.0));
        for (part, _) in PART_IDS {
            assert!(matches!(naming(part), Naming::Part { .. }), "{part}");
        }
    }

    #[test]
    fn a_thing_is_named_by_an_arn_only_where_others_name_it_so() {
        let here = Whereabouts { partition: "aws", account: Some("123456789012"), region: Some("us-east-1") };
        for (name, kind, own, ids) in THINGS {
            assert_eq!(canonical_kind(kind), *kind, "{name}: the type is spelled another way in aws.rs");
            assert!(!own.is_empty() || !ids.is_empty(), "{name}: nothing names it");
            // With an ARN in one state and a bare id in another, one thing would have two keys.
            let can_be_both = !own.is_empty() && !ids.is_empty();
            assert!(!can_be_both || arn(kind, "x", here).is_some(), "{name}: aws.rs has no ARN for {kind}");
        }
    }

    #[test]
    fn types_without_a_row_are_told_apart_from_those_that_only_terraform_has() {
        for (name, expected) in [
            ("terraform_data", Naming::Local),
            ("random_password", Naming::Local),
            ("null_resource", Naming::Local),
            ("aws_no_such_thing", Naming::Unknown),
            ("google_compute_instance", Naming::Unknown),
            ("aws_route53_record", Naming::Record),
        ] {
            assert_eq!(naming(name), expected, "{name}");
        }
    }
}
