//! dns: hosted zones and all of their record sets. Each zone is a place of its own.

use driftline_core::SourceName;
use driftline_sources::dns::{RECORD, ZONE, host, zone_place};
use driftline_sources::normalize::{Listing, Model, NormalizeError};
use futures_util::stream::{self, StreamExt};
use serde_json::{Map, Value, json};

use crate::pass::{Covered, Here, normalized};
use crate::row::{Given, Operation, Paging, Wire};
use crate::run::{Listed, ask, outcome, pages, reason};
use crate::shape::{all, at, boolean, number, text_at};

const LISTS: &[&str] = &["HostedZones", "ResourceRecordSets", "ResourceRecords", "VPCs"];

const fn operation(name: &'static str, path: &'static str, given: &'static [(&'static str, Given)]) -> Operation {
    Operation { service: "route53", name, wire: Wire::RestXml { path }, given, action: None, lists: LISTS }
}

const ZONES: Operation = operation("ListHostedZones", "/2013-04-01/hostedzone", &[("maxitems", Given::Number(100))]);
const ONE_ZONE: Operation = operation("GetHostedZone", "/2013-04-01/hostedzone/{}", &[]);
const RECORDS: Operation =
    operation("ListResourceRecordSets", "/2013-04-01/hostedzone/{}/rrset", &[("maxitems", Given::Number(300))]);

pub(crate) const OPERATIONS: &[Operation] = &[ZONES, ONE_ZONE, RECORDS];

const ZONE_PAGES: Paging = Paging { tokens: &[("marker", "NextMarker")], more: Some("IsTruncated") };
const RECORD_PAGES: Paging = Paging {
    tokens: &[("name", "NextRecordName"), ("type", "NextRecordType"), ("identifier", "NextRecordIdentifier")],
    more: Some("IsTruncated"),
};

/// Route 53 takes five calls a second; more at once would only wait.
const SIDE_BY_SIDE: usize = 4;

/// A zone's id as its answers and its records write it.
struct Zone {
    id: String,
    value: Value,
    records: Listed,
    /// Why the zone itself could not be read, if so.
    unread: Option<String>,
}

pub(crate) async fn observe(here: &Here, source: &SourceName) -> Result<Listing, NormalizeError> {
    let client = &here.client;
    let mut listed = pages(client, &ZONES, Some(&ZONE_PAGES), "HostedZones/*", &[], "").await;
    let zones = std::mem::take(&mut listed.items);
    let zones = stream::iter(zones.into_iter().map(|zone| async move {
        let id = text_at(&zone, "Id").unwrap_or_default();
        let id = id.strip_prefix("/hostedzone/").unwrap_or(id).to_owned();
        let records = pages(client, &RECORDS, Some(&RECORD_PAGES), "ResourceRecordSets/*", &[], &id).await;
        let (networks, unread) = match ask(client, &ONE_ZONE, &[], &id).await {
            Ok(answer) => (networks(&answer), None),
            Err(error) => (Value::Null, Some(reason(&error, &ONE_ZONE))),
        };
        Zone { value: self::zone(&zone, &id, &networks), id, records, unread }
    }));
    let zones: Vec<Zone> = zones.buffered(SIDE_BY_SIDE).collect().await;
    let mut covered = Covered::default();
    let mut records = Vec::new();
    for zone in &zones {
        let name = zone.value["name"].as_str().unwrap_or_default();
        records.extend(zone.records.items.iter().map(|set| record(set, &zone.id, name)));
        covered.add(RECORD, zone_place(Some(&here.account), &zone.id), zone.records.outcome());
    }
    if let Some(reason) = zones.iter().find_map(|zone| zone.unread.clone()) {
        listed.cut(reason);
    }
    covered.add(ZONE, here.place(ZONE), outcome(listed.partial.as_deref()));
    // A zone of which only half is known would look changed.
    let values: Vec<Value> = zones.into_iter().filter(|zone| zone.unread.is_none()).map(|zone| zone.value).collect();
    let document = here.document(json!({"zones": values, "records": records}));
    normalized(Model::Dns, here, source, &document, &covered, listed.problems)
}

fn networks(answer: &Value) -> Value {
    let mut found: Vec<(&str, &str)> = all(answer, "VPCs/*")
        .into_iter()
        .map(|vpc| (text_at(vpc, "VPCId").unwrap_or_default(), text_at(vpc, "VPCRegion").unwrap_or_default()))
        .collect();
    found.sort_unstable();
    Value::Array(found.into_iter().map(|(id, region)| json!({"vpcId": id, "vpcRegion": region})).collect())
}

fn zone(zone: &Value, id: &str, networks: &Value) -> Value {
    json!({
        "id": id,
        "name": host(text_at(zone, "Name").unwrap_or_default()),
        "isPrivate": at(zone, "Config/PrivateZone").map_or(Value::Bool(false), boolean),
        "recordCount": at(zone, "ResourceRecordSetCount").map(number),
        "comment": text_at(zone, "Config/Comment"),
        "vpcAssociations": networks,
    })
}

/// What makes one of several sets of a name and type special.
const ROUTING: [(&str, &str); 6] = [
    ("SetIdentifier", "setIdentifier"),
    ("Weight", "weight"),
    ("Region", "latencyRegion"),
    ("Failover", "failover"),
    ("MultiValueAnswer", "multiValueAnswer"),
    ("HealthCheckId", "healthCheckId"),
];

fn record(set: &Value, zone: &str, zone_name: &str) -> Value {
    let mut values: Vec<&str> = all(set, "ResourceRecords/*/Value").into_iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let alias = at(set, "AliasTarget").map(|alias| {
        json!({
            "dnsName": host(text_at(alias, "DNSName").unwrap_or_default()),
            "hostedZoneId": text_at(alias, "HostedZoneId"),
            "evaluateTargetHealth": at(alias, "EvaluateTargetHealth").map(boolean),
        })
    });
    let mut members: Map<String, Value> = Map::new();
    members.insert("zoneId".into(), zone.into());
    members.insert("zoneName".into(), zone_name.into());
    members.insert("name".into(), host(text_at(set, "Name").unwrap_or_default()).into());
    members.insert("type".into(), text_at(set, "Type").into());
    members.insert("ttl".into(), at(set, "TTL").map_or(Value::Null, number));
    members.insert("values".into(), values.into());
    members.insert("aliasTarget".into(), alias.unwrap_or_default());
    for (from, to) in ROUTING {
        if let Some(value) = at(set, from) {
            let value = if from == "SetIdentifier" { value.clone() } else { boolean(&number(value)) };
            members.insert(to.into(), value);
        }
    }
    if let Some(location) = at(set, "GeoLocation") {
        members.insert("geoLocation".into(), crate::shape::camel(location));
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_written_as_the_documents_write_it() {
        let set = json!({"Name": "\\052.Example.com.", "Type": "A", "TTL": "60", "SetIdentifier": "1", "Weight": "0",
            "ResourceRecords": [{"Value": "2.2.2.2"}, {"Value": "1.1.1.1"}]});
        let expected = json!({"zoneId": "Z", "zoneName": "example.com", "name": "*.example.com", "type": "A", "ttl": 60,
            "values": ["1.1.1.1", "2.2.2.2"], "aliasTarget": null, "setIdentifier": "1", "weight": 0});
        assert_eq!(record(&set, "Z", "example.com"), expected);
    }
}
