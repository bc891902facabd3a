//! What was done in AWS in a window of time, and which of it is about a resource.

use driftline_core::key::GLOBAL;
use driftline_core::{ResourceKey, Span};
use driftline_sources::cloudtrail::Event;
use driftline_sources::place::account_and_region;
use driftline_store::Store;
use jiff::{SignedDuration, Timestamp};

use super::{Act, Certainty, Turn, Turned, window};
use crate::args::BlameArgs;
use crate::error::CommandResult;
use crate::settings::Settings;
use crate::trail::LAG;

/// How far back AWS itself answers.
const REACH: SignedDuration = SignedDuration::from_hours(24 * 90);

/// Where AWS records what has no region.
const HOME: &str = "us-east-1";

/// Acts of one turn that are told.
const MOST: usize = 20;

pub(super) fn attribute(
    settings: &Settings,
    store: &Store,
    turn: &mut Turn,
    live: Option<&BlameArgs>,
) -> CommandResult<()> {
    let names = Names::of(&turn.key);
    let (account, region) = place_of(&turn.key);
    let Some(account) = account else {
        turn.notes.push("its account is not known, so there is nobody's record to look into".into());
        return Ok(());
    };
    let Some(window) = window(turn) else {
        turn.notes.push("no complete observation is from before it was there, so the window has no beginning".into());
        return Ok(());
    };
    let mut spans: Vec<Span> = Vec::new();
    let mut known = false;
    let mut events: Vec<Event> = Vec::new();
    for (id, stream) in store.catalog().event_streams() {
        let scope = id.scope.as_ref().map(ToString::to_string).unwrap_or_default();
        let (of_account, of_region) = scope.split_once('/').unwrap_or((scope.as_str(), ""));
        if of_account != account || region.is_some_and(|region| region != of_region) {
            continue;
        }
        let home =
            region.is_some() || of_region == HOME || of_region.ends_with("-gov-west-1") || of_region.starts_with("cn-");
        if home {
            known = true;
            spans.extend(stream.head().and_then(|head| head.nature.spans()).unwrap_or_default());
        }
        events.extend(store.events_within(id, window)?.values().filter_map(Event::of));
    }
    let missing = window_missing(turn, &spans);
    if let Some(args) = live.filter(|_| !missing.is_empty() || events.is_empty()) {
        let profile = args.profile.as_deref();
        let asked = crate::live::lookup(settings, profile, account, region.unwrap_or(HOME), window, &names.asked());
        match asked {
            Ok(found) => {
                events.extend(found);
                let young = settings.now.duration_since(turn.to) < LAG;
                let lag = if young { "; what is younger than about 15 minutes it may not know yet" } else { "" };
                turn.notes.push(format!("AWS itself was asked, and nothing of its answer was stored{lag}"));
            }
            Err(error) => {
                turn.notes.push(format!("AWS itself could not be asked: {}", error.message()));
                turn.notes.extend(told(settings.now, account, region, known, &missing));
            }
        }
    } else {
        turn.notes.extend(told(settings.now, account, region, known, &missing));
    }
    if region.is_none() && names.service == "s3" {
        turn.notes
            .push("what is done to a bucket is recorded in the region of the bucket, which is not known here".into());
    }
    let mut acts: Vec<Act> = events.iter().filter_map(|event| act(event, &names, turn)).collect();
    acts.sort_by(|a, b| (&a.event_id, a.certainty).cmp(&(&b.event_id, b.certainty)));
    acts.dedup_by(|a, b| a.event_id == b.event_id);
    acts.sort_by_key(|act| (act.certainty, std::cmp::Reverse(act.at)));
    if acts.len() > MOST {
        turn.notes.push(format!("{} more events name it; the surest {MOST} are told", acts.len() - MOST));
        acts.truncate(MOST);
    }
    if acts.is_empty() && missing.is_empty() && known {
        turn.notes.push(
            "every write of that time is known, and none names it: AWS may have changed it itself, or a call that \
             names it by something else"
                .into(),
        );
    }
    turn.acts = acts;
    Ok(())
}

/// The account and region of a resource, by its place or by its ARN.
fn place_of(key: &ResourceKey) -> (Option<&str>, Option<&str>) {
    let (account, region) = account_and_region(key.place.as_str());
    let of_arn = |nth: usize| {
        key.id.strip_prefix("arn:").and_then(|rest| rest.split(':').nth(nth - 1)).filter(|part| !part.is_empty())
    };
    (account.or_else(|| of_arn(4)), region.or_else(|| of_arn(3)).filter(|region| *region != GLOBAL))
}

/// The parts of the window, without its slack, of which not every event is known.
fn window_missing(turn: &Turn, spans: &[Span]) -> Vec<Span> {
    turn.from.map(|from| Span { from, to: turn.to }.without(spans)).unwrap_or_default()
}

/// What is not known, and what to do about it.
fn told(now: Timestamp, account: &str, region: Option<&str>, known: bool, missing: &[Span]) -> Option<String> {
    let (first, last) = (missing.first()?, missing.last()?);
    let place = format!("{account}/{}", region.unwrap_or(HOME));
    let global = if region.is_none() { ", where AWS records what has no region" } else { "" };
    let what = match known {
        false => format!("no events of {place}{global} are stored"),
        true => format!("not every event of {place} from {} to {} is stored{global}", first.from, last.to),
    };
    let young = now.duration_since(last.to) < LAG;
    let old = now.duration_since(first.from) > REACH;
    let observe = format!("`driftline observe cloudtrail --region {} --since {}`", region.unwrap_or(HOME), first.from);
    Some(match (young, old) {
        (_, true) => format!(
            "{what}; AWS itself answers for 90 days only: `driftline observe cloudtrail s3://bucket/prefix` reads a trail's files"
        ),
        (true, _) => format!("{what}; CloudTrail takes about 15 minutes: {observe} then, or --live"),
        _ => format!("{what}; {observe} gets them, or --live asks for this alone"),
    })
}

/// What a resource may be called in an event.
#[derive(Debug, PartialEq)]
struct Names<'a> {
    arn: Option<&'a str>,
    /// The service of its ARN, or of its type.
    service: String,
    /// The word for such a thing in the names of operations.
    noun: &'a str,
    /// Its id or name alone.
    short: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(key: &'a ResourceKey) -> Self {
        let arn = key.id.starts_with("arn:").then_some(key.id.as_str());
        let mut kind = key.kind.split("::").skip(1);
        let of_kind = kind.next().unwrap_or_default().to_lowercase();
        let service = arn.and_then(|arn| arn.split(':').nth(2)).map_or(of_kind, ToOwned::to_owned);
        let noun = kind.next().unwrap_or_default();
        let resource = arn.and_then(|arn| arn.splitn(6, ':').nth(5)).unwrap_or(&key.id);
        let mut short = Vec::new();
        for part in [resource, resource.split_once(['/', ':']).map_or(resource, |(_, rest)| rest)] {
            short.push(part);
            short.extend(part.rsplit(['/', ':']).next());
            // A zone's record is `Z123/name/TYPE`; events name the zone and, elsewhere, the record.
            if arn.is_none() {
                short.extend(part.split('/'));
            }
        }
        short.retain(|name| name.len() > 2);
        short.sort_unstable();
        short.dedup();
        Self { arn, service, noun, short }
    }

    /// What CloudTrail is asked for: it knows things by their ARN or by their name alone.
    fn asked(&self) -> Vec<&'a str> {
        let alone = self.short.iter().min_by_key(|name| name.len()).copied();
        self.arn.into_iter().chain(alone).collect()
    }

    /// Whether a member is the one that names such things: `functionName` of a function.
    fn is_noun(&self, member: &str) -> bool {
        let (member, noun) = (member.to_lowercase(), self.noun.to_lowercase());
        let rest = member.strip_prefix(&noun).filter(|_| !noun.is_empty());
        rest.is_some_and(|rest| ["", "name", "id", "identifier", "url", "arn"].contains(&rest))
    }

    /// Whether a value that an event names is this thing, and whether nothing else could be called so.
    fn is_named(&self, value: &str) -> Option<bool> {
        if let Some(arn) = self.arn
            && (value == arn || value.strip_prefix(arn).is_some_and(|rest| rest.starts_with(':')))
        {
            return Some(true);
        }
        let short =
            |name: &&&str| value == **name || (value.contains("://") && value.rsplit('/').next() == Some(**name));
        self.short.iter().find(short).map(|name| is_unique(name))
    }
}

/// An id that AWS made up, which nothing else has.
fn is_unique(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, hex)| hex.len() >= 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// An event as a possible cause of a change, if it names the resource at all.
fn act(event: &Event, names: &Names<'_>, turn: &Turn) -> Option<Act> {
    let named = event.resources.iter().map(|arn| (arn.as_str(), "resources"));
    let mentioned = event.mentions.iter().map(|(value, member)| (value.as_str(), member.as_str()));
    let found = named.chain(mentioned).filter_map(|(value, member)| Some((names.is_named(value)?, value, member)));
    // The surest way in which it is named.
    let (unique, value, member) = found.max_by_key(|(unique, value, _)| (*unique, value.len()))?;
    let same_service = same_service(&event.service, &names.service);
    let by_noun = !names.noun.is_empty() && event.name.contains(names.noun);
    // A function's name, where functions are named, is nobody else's in its account and region.
    let unique = unique || (same_service && names.is_noun(member));
    let fits = fits(&event.name, names.noun, turn.what);
    // Clocks differ, so a little before and after is looked at; but what is outside may be of the change before.
    let inside = turn.from.is_none_or(|from| from <= event.at) && event.at <= turn.to;
    let does_it = match turn.what {
        Turned::Modified => by_noun || fits == Some(true),
        Turned::New | Turned::Deleted => fits == Some(true),
    };
    let certainty = match (event.error.is_some(), same_service, unique, does_it && inside) {
        (true, ..) => Certainty::Refused,
        (_, true, true, true) if fits != Some(false) => Certainty::Certain,
        (_, true, ..) if fits != Some(false) => Certainty::Likely,
        (_, true, ..) | (_, false, true, _) => Certainty::Possible,
        // A thing of another service that happens to be called the same.
        (_, false, false, _) => return None,
    };
    let shown = if value.starts_with("arn:") { "its ARN".to_owned() } else { format!("`{value}`") };
    let mut why = format!("it names {shown} as {member}");
    if !same_service {
        why += ", but is of another service";
    }
    if event.more_mentions {
        why += "; it names more things than are kept";
    }
    Some(Act {
        at: event.at,
        who: event.who.clone(),
        what: format!("{} ({})", event.name, event.service),
        how: event.how(),
        from: event.from.clone().filter(|from| !from.ends_with(".amazonaws.com")),
        certainty,
        why,
        error: event.error.clone(),
        event_id: Some(event.id.clone()),
    })
}

/// Tags are set by a service of their own, on things of all.
fn same_service(of_event: &str, of_thing: &str) -> bool {
    let plain = |name: &str| match name {
        "monitoring" => "cloudwatch".to_owned(),
        "elasticfilesystem" => "efs".to_owned(),
        other => other.to_owned(),
    };
    of_event == "tagging" || plain(of_event) == plain(of_thing)
}

/// Whether an operation does, by its name, what happened: `None` if its name does not tell.
fn fits(operation: &str, noun: &str, what: Turned) -> Option<bool> {
    const MAKES: [&str; 7] = ["Create", "Run", "Register", "Allocate", "Import", "Restore", "Copy"];
    const UNMAKES: [&str; 6] = ["Delete", "Terminate", "Deregister", "Release", "Remove", "ScheduleKeyDeletion"];
    let starts = |verbs: &[&str]| verbs.iter().any(|verb| operation.starts_with(verb));
    // `DeleteRole` and not `DeleteRolePolicy`; `DeleteFunction20150331` and `RunInstances` are the noun, too.
    let whole = |verbs: &[&str]| {
        verbs.iter().filter_map(|verb| operation.strip_prefix(verb)).any(|rest| {
            let rest = rest.split(|char: char| char.is_ascii_digit()).next().unwrap_or(rest);
            let same = |text: &str| text.eq_ignore_ascii_case(noun);
            same(rest) || rest.strip_suffix('s').is_some_and(same)
        })
    };
    match what {
        Turned::New if whole(&MAKES) => Some(true),
        Turned::New if starts(&UNMAKES) => Some(false),
        Turned::Deleted if whole(&UNMAKES) || operation == "ScheduleKeyDeletion" => Some(true),
        Turned::Deleted => (!starts(&UNMAKES)).then_some(false),
        // What makes or unmakes the whole of it does not change a part of it.
        Turned::Modified if !noun.is_empty() => {
            let whole = ["Create", "Delete"].iter().any(|verb| operation.strip_prefix(verb) == Some(noun));
            whole.then_some(false)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_or_unmakes_the_thing_itself_is_its_making_or_end() {
        for (operation, noun, what, expected) in [
            ("DeleteRole", "Role", Turned::Deleted, Some(true)),
            ("DeleteFunction20150331", "Function", Turned::Deleted, Some(true)),
            ("TerminateInstances", "Instance", Turned::Deleted, Some(true)),
            ("ScheduleKeyDeletion", "Key", Turned::Deleted, Some(true)),
            ("DeleteRolePolicy", "Role", Turned::Deleted, None),
            ("UpdateRole", "Role", Turned::Deleted, Some(false)),
            ("RunInstances", "Instance", Turned::New, Some(true)),
            ("CreateVpc", "VPC", Turned::New, Some(true)),
            ("CreateTags", "Instance", Turned::New, None),
            ("DeleteRole", "Role", Turned::Modified, Some(false)),
        ] {
            assert_eq!(fits(operation, noun, what), expected, "{operation} {what:?}");
        }
    }
}
