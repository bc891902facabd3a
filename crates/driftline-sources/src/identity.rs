//! Which keys of different sources are of one thing.
//!
//! Sources know different amounts: one has the ARN, another only an id and a region. Equal keys meet anyway; here
//! those meet, too, whose type and name are equal and whose places do not contradict each other.

use std::collections::BTreeMap;

use driftline_core::ResourceKey;
use driftline_core::key::{GLOBAL, NOWHERE};

use crate::aws::{canonical_kind, local_id};
use crate::place::account_and_region;

/// Groups keys, each with what the caller knows it by, into things. In order; within a group, too.
pub fn things<T: Ord + Clone>(keys: impl IntoIterator<Item = (ResourceKey, T)>) -> Vec<Vec<(ResourceKey, T)>> {
    let mut named: BTreeMap<(String, String), Vec<(ResourceKey, T)>> = BTreeMap::new();
    for (key, from) in keys {
        let kind = canonical_kind(&key.kind).to_lowercase();
        let id = local_id(&key.kind, &key.id).to_owned();
        named.entry((kind, id)).or_default().push((key, from));
    }
    let mut things = Vec::new();
    for mut alike in named.into_values() {
        alike.sort();
        if alike.len() == 1 {
            things.push(alike);
            continue;
        }
        // Those that know their place whole go first; the others join the one they can be, if it is the only one.
        alike.sort_by_key(|(key, _)| unknown_parts(key));
        let mut groups: Vec<Vec<(ResourceKey, T)>> = Vec::new();
        for one in alike {
            let fits: Vec<usize> =
                (0..groups.len()).filter(|at| groups[*at].iter().all(|(key, _)| can_be_one(key, &one.0))).collect();
            match fits.as_slice() {
                [only] => groups[*only].push(one),
                _ => groups.push(vec![one]),
            }
        }
        things.extend(groups);
    }
    things.sort();
    things
}

fn parts(key: &ResourceKey) -> [Option<&str>; 2] {
    let place = key.place.as_str();
    if place == NOWHERE {
        return [None, None];
    }
    let (account, region) = account_and_region(place);
    // A place that is not of a cloud is known as it is.
    match place.starts_with("aws/") {
        true => [account, region.or(Some(GLOBAL)).filter(|region| *region != NOWHERE)],
        false => [Some(place), Some(place)],
    }
}

fn unknown_parts(key: &ResourceKey) -> usize {
    parts(key).iter().filter(|part| part.is_none()).count()
}

fn can_be_one(a: &ResourceKey, b: &ResourceKey) -> bool {
    parts(a).into_iter().zip(parts(b)).all(|(a, b)| a.is_none() || b.is_none() || a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::key;

    fn groups(keys: &[(&str, &str, &str)]) -> Vec<Vec<usize>> {
        let keys = keys.iter().enumerate().map(|(at, (kind, place, id))| (key(kind, place, id), at));
        let mut groups: Vec<Vec<usize>> =
            things(keys).into_iter().map(|group| group.into_iter().map(|(_, at)| at).collect()).collect();
        for group in &mut groups {
            group.sort_unstable();
        }
        groups.sort();
        groups
    }

    #[test]
    fn an_id_meets_the_arn_that_ends_in_it() {
        let arn = "arn:aws:ec2:us-east-1:1:vpc/vpc-1";
        assert_eq!(
            groups(&[("AWS::EC2::VPC", "aws/1/us-east-1", arn), ("AWS::EC2::VPC", "aws/-/us-east-1", "vpc-1")]),
            [[0, 1]]
        );
    }

    #[test]
    fn two_regions_do_not_meet_and_one_that_could_be_either_joins_neither() {
        let function = |region: &str| format!("arn:aws:lambda:{region}:1:function:f");
        let (east, west) = (function("us-east-1"), function("us-west-2"));
        let kind = "AWS::Lambda::Function";
        assert_eq!(
            groups(&[(kind, "aws/1/us-east-1", &east), (kind, "aws/1/us-west-2", &west), (kind, "-", "f"),]),
            [[0], [1], [2]]
        );
        assert_eq!(groups(&[(kind, "aws/1/us-east-1", &east), (kind, "aws/2/us-east-1", "f")]), [[0], [1]]);
    }

    #[test]
    fn equal_names_of_different_types_do_not_meet() {
        assert_eq!(groups(&[("AWS::SQS::Queue", "-", "x"), ("AWS::SNS::Topic", "-", "x")]), [[0], [1]]);
    }
}
