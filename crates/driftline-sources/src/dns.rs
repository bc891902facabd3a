//! dns: zones, their records, and the orphans that the observer itself found.
//!
//! A zone is the smallest thing that is listed whole, so each has a place of its own: an observer that cannot read
//! one of them goes on without a word, and its records must not look deleted.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::canonical::Encoder;
use driftline_core::{Outcome, Place, Properties, ResourceKey, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::aws::{Whereabouts, resource_key};
use crate::normalize::{
    Context, Document, Listing, NormalizeError, Opened, TRUNCATED, encode, key, member, open, place_part, read, text,
    time, value,
};

pub const ZONE: &str = "AWS::Route53::HostedZone";
pub const RECORD: &str = "AWS::Route53::RecordSet";
/// A record that the observer says points at nothing. Its going away is good news.
pub const ORPHAN: &str = "Driftline::Dns::Orphan";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    fetched_at: Option<String>,
    account_id: Option<String>,
    #[serde(default)]
    truncated: bool,
    #[serde(borrow)]
    zones: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    records: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    orphans: Option<Vec<&'a RawValue>>,
}

/// The place of a zone's records.
pub fn zone_place(account: Option<&str>, zone: &str) -> String {
    format!("{}/{zone}", Whereabouts { account, ..Whereabouts::default() }.place(ZONE))
}

/// Names are written without the last dot and without capitals, whoever writes them; Route 53 writes `*` as `\052`.
pub fn host(name: &str) -> String {
    let name = name.strip_suffix('.').unwrap_or(name).to_lowercase();
    if name.contains("\\052") { name.replace("\\052", "*") } else { name }
}

/// The id of a record.
pub fn record_id(zone: &str, name: &str, kind: &str, set: Option<&str>) -> String {
    let mut id = format!("{zone}/{}/{kind}", host(name));
    if let Some(set) = set {
        id.push('/');
        id.push_str(set);
    }
    id
}

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let mut listing = Listing::default();
    for document in &open(documents)? {
        let raw: Raw<'_> = read(document)?;
        if raw.zones.is_none() && raw.records.is_none() && raw.orphans.is_none() {
            return Err(NormalizeError::new(
                &document.name,
                "this is not a document of dns-observation: it has neither `zones` nor `records` nor `orphans`",
            ));
        }
        listing.taken(time(raw.fetched_at.as_deref()).or(document.written_at));
        let account = place_part(document, "accountId", raw.account_id.as_deref())?.or(context.account.as_deref());
        let at = Whereabouts { partition: &context.partition, account, region: None };
        let reason = raw.truncated.then_some(TRUNCATED);
        if let Some(zones) = &raw.zones {
            take_zones(&mut listing, document, zones, at, reason)?;
        }
        if let Some(records) = &raw.records {
            take_records(&mut listing, document, records, account, reason)?;
        }
        if let Some(orphans) = &raw.orphans {
            take_orphans(&mut listing, document, orphans, at, reason)?;
        }
    }
    Ok(vec![listing])
}

fn zone_id(id: &str) -> &str {
    id.strip_prefix("/hostedzone/").unwrap_or(id)
}

fn take_zones(
    listing: &mut Listing,
    document: &Opened<'_>,
    zones: &[&RawValue],
    at: Whereabouts<'_>,
    reason: Option<&str>,
) -> Result<(), NormalizeError> {
    let mut nameless = 0;
    for item in zones {
        listing.items += 1;
        let value = value(document, item)?;
        match text(&value, "id") {
            Some(id) => listing.add(resource_key(ZONE, zone_id(id), at), &value, Vec::new(), &document.name)?,
            None => nameless += 1,
        }
    }
    let nameless = listing.nameless(&document.name, ZONE, "id", nameless);
    listing.cover_unless(ZONE, &at.place(ZONE), reason.or(nameless.as_deref()));
    Ok(())
}

fn take_records(
    listing: &mut Listing,
    document: &Opened<'_>,
    records: &[&RawValue],
    account: Option<&str>,
    reason: Option<&str>,
) -> Result<(), NormalizeError> {
    // By zone, then by id: record sets that share a name and a type and have no identifier come together.
    let mut zones: BTreeMap<String, BTreeMap<String, Vec<Properties>>> = BTreeMap::new();
    let mut whole: BTreeSet<String> = BTreeSet::new();
    let mut nameless = 0;
    let mut encoder = Encoder::new();
    for item in records {
        listing.items += 1;
        let record = encode(document, item, &mut encoder)?;
        let (Some(zone), Some(name), Some(kind)) =
            (member(record, "zoneId"), member(record, "name"), member(record, "type"))
        else {
            nameless += 1;
            continue;
        };
        let zone = zone_id(zone);
        // Every zone has one of these, so a listing of a zone without it was filtered or cut.
        if kind == "SOA" {
            whole.insert(zone.to_owned());
        }
        let id = record_id(zone, name, kind, member(record, "setIdentifier"));
        if !zones.contains_key(zone) {
            zones.insert(zone.to_owned(), BTreeMap::new());
        }
        let sets = zones.get_mut(zone).expect("put there just now").entry(id).or_insert_with(|| Vec::with_capacity(1));
        sets.push(record.into());
    }
    let nameless = listing.nameless(&document.name, RECORD, "zoneId, name or type", nameless);
    for (zone, records) in zones {
        let place = zone_place(account, &zone);
        for (id, sets) in records {
            let key = ResourceKey { kind: RECORD.to_owned(), place: Place::new(place.as_str()), id };
            match sets.as_slice() {
                [one] => listing.add_encoded(key, one.as_ref(), Vec::new(), &document.name)?,
                several => {
                    let value = together(several.iter().map(Properties::to_value));
                    listing.add(key, &value, Vec::new(), &document.name)?;
                }
            }
        }
        let filtered = (!whole.contains(&zone)).then_some("the zone's SOA record is not among them: filtered or cut");
        listing.cover_unless(RECORD, &place, reason.or(filtered).or(nameless.as_deref()));
    }
    Ok(())
}

/// Weighted and latency sets that share a name and a type: one record with each set under what it points at.
fn together(sets: impl Iterator<Item = Value>) -> Value {
    let mut members: BTreeMap<String, Value> = BTreeMap::new();
    let mut by_target: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for mut set in sets {
        if let Value::Object(set) = &mut set {
            for shared in ["zoneId", "zoneName", "name", "type"] {
                if let Some(value) = set.remove(shared) {
                    members.insert(shared.into(), value);
                }
            }
        }
        let alias = set.get("aliasTarget").and_then(|alias| text(alias, "dnsName"));
        let values = set.get("values").and_then(Value::as_array).unwrap_or_default();
        // In any order they are the same target.
        let values: BTreeSet<&str> = values.iter().filter_map(Value::as_str).collect();
        let target = alias.map_or_else(|| values.into_iter().collect::<Vec<_>>().join(" "), ToOwned::to_owned);
        by_target.entry(target).or_default().push(set);
    }
    let sets = by_target.into_iter().flat_map(|(target, mut sets)| {
        sets.sort();
        sets.into_iter().enumerate().map(move |(at, set)| match at {
            0 => (target.clone(), set),
            at => (format!("{target} #{}", at + 1), set),
        })
    });
    members.insert("sets".into(), Value::Object(sets.collect()));
    Value::Object(members)
}

fn take_orphans(
    listing: &mut Listing,
    document: &Opened<'_>,
    orphans: &[&RawValue],
    at: Whereabouts<'_>,
    reason: Option<&str>,
) -> Result<(), NormalizeError> {
    let place = at.place(ZONE);
    let mut nameless = 0;
    for item in orphans {
        listing.items += 1;
        let value = value(document, item)?;
        let (Some(name), Some(target)) = (text(&value, "recordName"), text(&value, "target")) else {
            nameless += 1;
            continue;
        };
        let zone = zone_id(text(&value, "zoneId").unwrap_or("unknown"));
        let kind = text(&value, "recordType").unwrap_or("record");
        let id = format!("{} -> {}", record_id(zone, name, kind, None), host(target));
        listing.add(key(ORPHAN, &place, &id), &value, Vec::new(), &document.name)?;
    }
    let nameless = listing.nameless(&document.name, ORPHAN, "recordName or target", nameless);
    let outcome = match reason.or(nameless.as_deref()) {
        None => Outcome::Complete,
        Some(reason) => Outcome::Partial { reason: reason.to_owned() },
    };
    listing.cover(ORPHAN, &place, outcome);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::normalize::Model;
    use crate::normalize::testing::{extent, keys, listing, normalize, properties};

    fn record(zone: &str, name: &str, kind: &str, value: &str) -> String {
        format!(
            r#"{{"zoneId":"{zone}","zoneName":"example.com","name":"{name}","type":"{kind}","ttl":300,"values":["{value}"],"aliasTarget":null}}"#
        )
    }

    fn records(records: &[String], truncated: bool) -> String {
        format!(
            r#"{{"fetchedAt":"2026-06-29T10:00:00Z","accountId":"123456789012","truncated":{truncated},"records":[{}],"summary":{{}}}}"#,
            records.join(",")
        )
    }

    #[test]
    fn a_zone_is_listed_whole_if_its_soa_record_is_there() {
        let all = [
            record("Z1", "example.com", "SOA", "x"),
            record("Z1", "WWW.example.com.", "A", "203.0.113.1"),
            record("/hostedzone/Z2", "\\\\052.example.org", "CNAME", "y"),
        ];
        let found = listing(Model::Dns, &[&records(&all, false)]);
        assert_eq!(
            keys(&found),
            [
                "AWS::Route53::RecordSet aws/123456789012/global/Z1 Z1/example.com/SOA",
                "AWS::Route53::RecordSet aws/123456789012/global/Z1 Z1/www.example.com/A",
                "AWS::Route53::RecordSet aws/123456789012/global/Z2 Z2/*.example.org/CNAME",
            ]
        );
        assert_eq!(extent(&found, super::RECORD, "aws/123456789012/global/Z1"), "complete");
        assert!(extent(&found, super::RECORD, "aws/123456789012/global/Z2").contains("SOA"));
        assert_eq!(extent(&found, super::RECORD, "aws/123456789012/global/Z3"), "", "a zone nobody could read");
        let cut = listing(Model::Dns, &[&records(&all, true)]);
        assert!(extent(&cut, super::RECORD, "aws/123456789012/global/Z1").contains("truncated"));
    }

    #[test]
    fn weighted_sets_keep_apart_and_their_order_is_chance() {
        let mut all = vec![
            record("Z1", "www", "A", "203.0.113.1"),
            record("Z1", "www", "A", "203.0.113.2"),
            record("Z1", "www", "A", "203.0.113.2"),
        ];
        let found = listing(Model::Dns, &[&records(&all, false)]);
        let sets = properties(&found, "Z1/www/A");
        let names: Vec<&String> =
            sets.get("sets").and_then(|sets| sets.as_object()).into_iter().flat_map(|sets| sets.keys()).collect();
        assert_eq!(names, ["203.0.113.1", "203.0.113.2", "203.0.113.2 #2"]);
        all.reverse();
        assert_eq!(found, listing(Model::Dns, &[&records(&all, false)]));
        let with_identifiers =
            all.iter().enumerate().map(|(at, one)| one.replacen('{', &format!("{{\"setIdentifier\":\"s{at}\","), 1));
        let found = listing(Model::Dns, &[&records(&with_identifiers.collect::<Vec<_>>(), false)]);
        assert_eq!(found.resources.len(), 3);
    }

    #[test]
    fn zones_and_orphans_are_read_beside_records() {
        let zones = r#"{"fetchedAt":"x","accountId":"123456789012","truncated":false,"zones":[{"id":"Z1","name":"example.com","isPrivate":false,"recordCount":2,"comment":null,"vpcAssociations":[]}],"summary":{}}"#;
        let orphans = r#"{"fetchedAt":"x","accountId":"123456789012","truncated":false,"orphans":[{"zoneId":"Z1","zoneName":"example.com","recordName":"old.example.com","recordType":"CNAME","target":"Dead.elb.amazonaws.com.","reason":"cname_target_elb_not_found"}],"summary":{}}"#;
        let found = listing(Model::Dns, &[zones, orphans]);
        assert_eq!(
            keys(&found),
            [
                "AWS::Route53::HostedZone aws/123456789012/global arn:aws:route53:::hostedzone/Z1",
                "Driftline::Dns::Orphan aws/123456789012/global Z1/old.example.com/CNAME -> dead.elb.amazonaws.com",
            ]
        );
        assert_eq!(extent(&found, super::ORPHAN, "aws/123456789012/global"), "complete");
        assert!(normalize(Model::Dns, &["{}"]).is_err());
    }
}
