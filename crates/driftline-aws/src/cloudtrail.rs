//! cloudtrail: what was done in an account, asked of `LookupEvents` or read from a trail's files in S3.

use std::collections::BTreeMap;

use driftline_core::{Outcome, Span};
use driftline_sources::cloudtrail::{Asked, Known, Trail, Whose, is_log};
use driftline_sources::normalize::{Listing, NormalizeError};
use futures_util::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::bucket::{Bucket, Object};
use crate::pass::{BASIS, Here};
use crate::row::{Given, Operation, Paging, Wire};
use crate::run::{each_page, reason};
use crate::shape::all;

const LOOKUP: Operation = Operation {
    service: "cloudtrail",
    name: "LookupEvents",
    wire: Wire::Json { version: "1.1", target: "com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101" },
    given: &[("MaxResults", Given::Number(50))],
    action: None,
    lists: &[],
};

pub(crate) const OPERATIONS: &[Operation] = &[LOOKUP];

const PAGES: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };

/// CloudTrail has an event at hand within this time, says AWS, on average; what is younger may still come.
pub const LAG: SignedDuration = SignedDuration::from_mins(15);

/// How far back `LookupEvents` goes.
pub const REACH: SignedDuration = SignedDuration::from_hours(24 * 90);

/// What is asked of a trail.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Also what only read.
    pub reads: bool,
    /// From when on; `None` goes on where what is known ends.
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Where what is known of a place ends, by scope.
    pub known_until: BTreeMap<String, Timestamp>,
    /// How far back a place is looked at of which nothing is known.
    pub first: SignedDuration,
    /// Only what is about a thing of this name.
    pub about: Option<String>,
}

impl Events {
    /// The span to look at in a place.
    pub fn span(&self, scope: &str, now: Timestamp) -> Span {
        let until = self.until.unwrap_or(now);
        let known = self.known_until.get(scope).map(|known| earlier(*known, LAG));
        let from = self.since.or(known).unwrap_or_else(|| earlier(until, self.first));
        Span { from: from.min(until), to: until }
    }

    fn asked(&self, within: Span) -> Asked {
        Asked { reads: self.reads, within: Some(within) }
    }
}

pub(crate) fn earlier(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// Asks for the events of one account in one region. They come newest first, so that a listing that is cut is whole
/// back to the last page that came.
pub(crate) async fn observe(here: &Here, events: &Events) -> Result<Listing, NormalizeError> {
    let scope = here.scope();
    let span = events.span(&scope.to_string(), here.taken_at);
    let mut trail = Trail::new(events.asked(span));
    let whose = Whose {
        account: here.account.clone(),
        region: here.region.clone().unwrap_or_else(|| here.client.region().into()),
    };
    trail.looked_at(whose.clone());
    let name = format!("the events of {scope}");
    // Only one attribute may be asked for. What is about a thing is little; what only reads is most of everything.
    let attribute = match &events.about {
        Some(about) => Some(("ResourceName", about.as_str())),
        None => (!events.reads).then_some(("ReadOnly", "false")),
    };
    let mut more = vec![
        ("StartTime".to_owned(), json!(span.from.as_second())),
        // Its own second is part of what CloudTrail answers, and not of the span.
        ("EndTime".to_owned(), json!(span.to.as_second())),
    ];
    if let Some((key, value)) = attribute {
        let attributes = json!([{"AttributeKey": key, "AttributeValue": value}]);
        more.push(("LookupAttributes".to_owned(), attributes));
    }
    let mut oldest: Option<Timestamp> = None;
    let cut = each_page(&here.client, &LOOKUP, Some(&PAGES), &more, "", |answer| {
        for event in all(answer, "Events/*") {
            oldest = time(event).into_iter().chain(oldest).min();
            match event.get("CloudTrailEvent").and_then(Value::as_str) {
                Some(text) => trail.record(&name, text),
                None => trail.record(&name, ""),
            }
        }
    })
    .await;
    let settled = span.to.min(earlier(here.taken_at, LAG));
    let whole = match (&cut, oldest) {
        (None, _) => Some(Span { from: span.from, to: settled }),
        // Of the second at which the last page ended there may have been more.
        (Some(_), Some(oldest)) => oldest.checked_add(1.second()).ok().map(|from| Span { from, to: settled }),
        (Some(_), None) => None,
    };
    // A lookup of one thing knows nothing of the others.
    let spans = whole.filter(|_| events.about.is_none()).into_iter().collect();
    let outcome = cut.map_or(Outcome::Complete, |reason| Outcome::Partial { reason });
    let listings = trail.listings(&BTreeMap::from([(whose, Known { outcome, spans })]))?;
    let mut listing = listings.into_iter().next().unwrap_or_default();
    listing.scope = None;
    listing.taken_at = Some(here.taken_at);
    listing.coverage = std::mem::take(&mut listing.coverage).on_basis(Some(BASIS.to_owned()));
    Ok(listing)
}

/// Seconds since 1970 with a fraction, as JSON protocols write times; some emulators write a text.
fn time(event: &Value) -> Option<Timestamp> {
    let at = event.get("EventTime")?;
    match at.as_str() {
        Some(text) => text.parse().ok(),
        None => {
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds of a time that is checked")]
            let seconds = at.as_f64()?.floor() as i64;
            Timestamp::from_second(seconds).ok()
        }
    }
}

/// How much of a bucket is read.
const MOST_PREFIXES: usize = 10_000;
const MOST_FILES: usize = 1_000_000;
const SIDE_BY_SIDE: usize = 16;

/// The files of a trail beneath a prefix of a bucket, and the places whose days were listed whole, with the first day
/// that has a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    pub objects: Vec<Object>,
    pub places: BTreeMap<Whose, Option<Timestamp>>,
}

/// Finds the log files of a span. A trail writes `AWSLogs/<account>/CloudTrail/<region>/<year>/<month>/<day>/`, with an
/// organization's id before the account if it is an organization's; days outside of the span are not even listed.
pub async fn files(
    bucket: &mut Bucket,
    prefix: &str,
    span_of: impl Fn(&Whose) -> Span,
) -> Result<Files, aws_wire::Error> {
    let mut files = Files::default();
    let mut prefixes = vec![match prefix.is_empty() || prefix.ends_with('/') {
        true => prefix.to_owned(),
        false => format!("{prefix}/"),
    }];
    while let Some(prefix) = prefixes.pop() {
        match Level::of(&prefix) {
            Level::Region(whose) => {
                let mut first = None;
                for day in days(span_of(&whose)) {
                    let found = bucket.list(&format!("{prefix}{day}/"), false, MOST_FILES).await?;
                    if first.is_none() && !found.objects.is_empty() {
                        first = midnight(&day);
                    }
                    files.objects.extend(found.objects);
                }
                // Of the time before its first file a trail says nothing: it was not there yet, or its files are gone.
                files.places.insert(whose, first);
            }
            // Part of a place's files: all of them are read, and nothing is said of the rest.
            Level::Within => files.objects.extend(bucket.list(&prefix, false, MOST_FILES).await?.objects),
            Level::Above => {
                let found = bucket.list(&prefix, true, MOST_PREFIXES).await?;
                files.objects.extend(found.objects);
                prefixes.extend(found.prefixes.into_iter().filter(|one| leads_to_logs(one)));
            }
        }
    }
    files.objects.retain(|object| is_log(&object.key));
    files.objects.sort_by(|a, b| a.key.cmp(&b.key));
    files.objects.dedup();
    Ok(files)
}

/// Reads them all, some side by side, and hands each over as it comes.
pub async fn read(
    bucket: &Bucket,
    objects: &[Object],
    most: u64,
    mut take: impl FnMut(&Object, Result<Vec<u8>, aws_wire::Error>),
) {
    let reading = stream::iter(objects.iter().map(|object| {
        let mut bucket = bucket.clone();
        async move { (object, bucket.get(&object.key, most).await) }
    }));
    let mut reading = reading.buffered(SIDE_BY_SIDE);
    while let Some((object, bytes)) = reading.next().await {
        take(object, bytes);
    }
}

/// Where in the tree of a trail's files a prefix is.
#[derive(Debug, PartialEq)]
enum Level {
    Above,
    Region(Whose),
    Within,
}

impl Level {
    fn of(prefix: &str) -> Level {
        let parts: Vec<&str> = prefix.split('/').filter(|part| !part.is_empty()).collect();
        let Some(at) = parts.iter().rposition(|part| *part == "CloudTrail").filter(|at| *at > 0) else {
            return Level::Above;
        };
        match &parts[at + 1..] {
            [] => Level::Above,
            [region] if is_account(parts[at - 1]) => {
                Level::Region(Whose { account: parts[at - 1].to_owned(), region: (*region).to_owned() })
            }
            _ => Level::Within,
        }
    }
}

fn is_account(part: &str) -> bool {
    part.len() == 12 && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Of what is one level down, that which may lead to log files: other services write beside them.
fn leads_to_logs(prefix: &str) -> bool {
    let mut parts = prefix.trim_end_matches('/').rsplit('/');
    let (last, above) = (parts.next().unwrap_or_default(), parts.next());
    match above {
        Some("CloudTrail") => true,
        _ => last == "AWSLogs" || last == "CloudTrail" || last.starts_with("o-") || is_account(last),
    }
}

/// The days of a span as a trail names them: `2026/01/31`. A file may be of the day after the events in it.
fn days(span: Span) -> Vec<String> {
    let date = |time: Timestamp| time.to_zoned(jiff::tz::TimeZone::UTC).date();
    let (first, last) = (date(span.from), date(span.to.checked_add(LAG).unwrap_or(span.to)));
    first.series(1.day()).take_while(|day| *day <= last).map(|day| day.strftime("%Y/%m/%d").to_string()).collect()
}

/// The beginning of a day that a trail names.
fn midnight(day: &str) -> Option<Timestamp> {
    let date = jiff::civil::Date::strptime("%Y/%m/%d", day).ok()?;
    Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

/// What each place is known to have, after its files were read: whole if all of them could be.
pub fn known(
    places: &BTreeMap<Whose, Option<Timestamp>>,
    span_of: impl Fn(&Whose) -> Span,
    now: Timestamp,
    cut: Option<&str>,
) -> BTreeMap<Whose, Known> {
    let one = |(whose, first): (&Whose, &Option<Timestamp>)| {
        let span = span_of(whose);
        let until = span.to.min(earlier(now, LAG));
        let span = first.map(|first| Span { from: span.from.max(first), to: until }).filter(|it| it.from < it.to);
        let known = match cut {
            None => Known { outcome: Outcome::Complete, spans: span.into_iter().collect() },
            Some(reason) => Known { outcome: Outcome::Partial { reason: reason.to_owned() }, spans: Vec::new() },
        };
        (whose.clone(), known)
    };
    places.iter().map(one).collect()
}

/// The reason why a file could not be read, in words that are the same each time.
pub fn unread(error: &aws_wire::Error) -> String {
    let operation =
        if &*error.operation == crate::bucket::LIST.name { &crate::bucket::LIST } else { &crate::bucket::GET };
    reason(error, operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: &str, to: &str) -> Span {
        Span { from: from.parse().expect("a time"), to: to.parse().expect("a time") }
    }

    #[test]
    fn a_pass_goes_on_where_the_last_one_ended_with_an_overlap() {
        let now = "2026-01-10T00:00:00Z".parse().expect("a time");
        let mut events = Events { first: SignedDuration::from_hours(24), ..Events::default() };
        assert_eq!(events.span("a/b", now), span("2026-01-09T00:00:00Z", "2026-01-10T00:00:00Z"));
        events.known_until.insert("a/b".into(), "2026-01-09T23:00:00Z".parse().expect("a time"));
        assert_eq!(events.span("a/b", now), span("2026-01-09T22:45:00Z", "2026-01-10T00:00:00Z"));
        events.since = "2026-01-01T00:00:00Z".parse().ok();
        assert_eq!(events.span("a/b", now), span("2026-01-01T00:00:00Z", "2026-01-10T00:00:00Z"));
        events.until = "2025-01-01T00:00:00Z".parse().ok();
        assert_eq!(events.span("a/b", now), span("2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z"), "never backwards");
    }

    #[test]
    fn the_files_of_a_trail_are_told_from_what_lies_beside_them() {
        let whose = Whose { account: "123456789012".into(), region: "us-east-1".into() };
        for (prefix, level) in [
            ("", Level::Above),
            ("logs/AWSLogs/", Level::Above),
            ("AWSLogs/123456789012/CloudTrail/", Level::Above),
            ("AWSLogs/o-abc/123456789012/CloudTrail/us-east-1/", Level::Region(whose)),
            ("AWSLogs/123456789012/CloudTrail/us-east-1/2026/", Level::Within),
        ] {
            assert_eq!(Level::of(prefix), level, "{prefix}");
        }
        for (prefix, leads) in [
            ("AWSLogs/", true),
            ("x/AWSLogs/o-1a2b/", true),
            ("AWSLogs/123456789012/", true),
            ("AWSLogs/123456789012/CloudTrail/", true),
            ("AWSLogs/123456789012/CloudTrail/eu-west-1/", true),
            ("AWSLogs/123456789012/CloudTrail-Digest/", false),
            ("AWSLogs/123456789012/elasticloadbalancing/", false),
            ("backups/", false),
        ] {
            assert_eq!(leads_to_logs(prefix), leads, "{prefix}");
        }
        assert!(is_log("a/b_CloudTrail_us-east-1_20260101T0000Z_x.json.gz") && is_log("x.json"));
        assert!(!is_log("AWSLogs/1/CloudTrail-Digest/x.json.gz") && !is_log("x.txt") && !is_log("x/"));
    }

    #[test]
    fn the_days_of_a_span_reach_into_the_day_after_by_the_lag() {
        let one = days(span("2026-02-28T01:00:00Z", "2026-02-28T02:00:00Z"));
        assert_eq!(one, ["2026/02/28"]);
        let over = days(span("2026-02-28T23:00:00Z", "2026-02-28T23:50:00Z"));
        assert_eq!(over, ["2026/02/28", "2026/03/01"]);
    }
}
