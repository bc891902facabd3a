//! `[watch]` and `[[notify]]` of the configuration: what is written there, and what that means.

use std::path::PathBuf;
use std::time::Duration;

use driftline_core::Severity;
use driftline_core::rule::Glob;
use driftline_core::severity::SeverityError;
use jiff::Timestamp;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::error::{CommandError, CommandResult};
use crate::filter::Filter;
use crate::time::parse_duration;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawWatch {
    pub every: Option<String>,
    jitter: Option<String>,
    at_once: Option<usize>,
    flap_limit: Option<usize>,
    flap_window: Option<String>,
    calm: Option<String>,
    give_up_after: Option<String>,
    #[serde(default)]
    quiet: Vec<RawQuiet>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQuiet {
    #[serde(default)]
    days: Vec<String>,
    from: String,
    to: String,
    time_zone: Option<String>,
    source: Option<String>,
    then: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawNotify {
    name: Option<String>,
    kind: String,
    min_severity: Option<String>,
    r#where: Option<String>,
    #[serde(default)]
    sources: Vec<String>,
    health: Option<bool>,
    at_most: Option<usize>,
    url: Option<String>,
    url_env: Option<String>,
    url_file: Option<PathBuf>,
    token_env: Option<String>,
    token_file: Option<PathBuf>,
    channel: Option<String>,
    secret_env: Option<String>,
    secret_file: Option<PathBuf>,
    #[serde(default)]
    plain_http: bool,
    smtp: Option<String>,
    tls: Option<String>,
    from: Option<String>,
    #[serde(default)]
    to: Vec<String>,
    username: Option<String>,
    password_env: Option<String>,
    password_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    plain_smtp: bool,
    topic: Option<String>,
    profile: Option<String>,
}

/// How the sources are watched.
#[derive(Debug)]
pub(crate) struct Watch {
    /// How often, where a source does not say.
    pub every: Duration,
    /// The most that a run may be late on purpose; a tenth of its interval if nothing is said.
    pub jitter: Option<Duration>,
    pub at_once: usize,
    pub damping: Damping,
    pub give_up_after: Option<Duration>,
    pub quiet: Vec<Quiet>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            every: Duration::from_mins(15),
            jitter: None,
            at_once: 4,
            damping: Damping::default(),
            give_up_after: None,
            quiet: Vec::new(),
        }
    }
}

/// When something that comes and goes is no longer worth a message each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damping {
    /// So many changes are told,
    pub limit: usize,
    /// within this time,
    pub window: Duration,
    /// and then none until it has stayed as it is for this long.
    pub calm: Duration,
}

impl Default for Damping {
    fn default() -> Self {
        Self { limit: 4, window: Duration::from_hours(6), calm: Duration::from_hours(1) }
    }
}

/// What becomes of what would be told in a maintenance window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Hold,
    Drop,
}

/// A maintenance window.
#[derive(Debug)]
pub(crate) struct Quiet {
    /// On which days it begins; none stands for all.
    days: Vec<Weekday>,
    from: Time,
    to: Time,
    zone: TimeZone,
    source: Option<Glob>,
    then: Then,
}

impl Quiet {
    fn holds_at(&self, now: Timestamp) -> bool {
        let here = now.to_zoned(self.zone.clone());
        let (today, time) = (here.weekday(), here.time());
        let begins_on = |day: Weekday| self.days.is_empty() || self.days.contains(&day);
        if self.from < self.to {
            return begins_on(today) && time >= self.from && time < self.to;
        }
        // Over midnight, or a whole day.
        (begins_on(today) && time >= self.from) || (begins_on(today.previous()) && time < self.to)
    }
}

impl Watch {
    /// Whether what is to be told of a source waits now, and what then becomes of it. Holding goes before dropping.
    pub(crate) fn quiet(&self, source: &str, now: Timestamp) -> Option<Then> {
        let of = self
            .quiet
            .iter()
            .filter(|quiet| quiet.source.as_ref().is_none_or(|glob| speaks_of(glob, source)) && quiet.holds_at(now));
        of.map(|quiet| quiet.then).min_by_key(|then| *then == Then::Drop)
    }
}

/// Whether a pattern speaks of a stream, by its whole name or by its source's.
pub(crate) fn speaks_of(glob: &Glob, stream: &str) -> bool {
    glob.matches(stream) || glob.matches(stream.split('@').next().unwrap_or(stream))
}

/// One channel, as configured. Secrets are named here and read when they are needed.
#[derive(Debug)]
pub(crate) struct Notify {
    pub name: String,
    pub min_severity: Option<Severity>,
    pub filter: Option<Filter>,
    pub sources: Vec<Glob>,
    /// Whether it is told when a source fails or goes stale.
    pub health: bool,
    /// More messages than this in a round become one.
    pub at_most: usize,
    pub target: Target,
}

#[derive(Debug)]
pub(crate) enum Target {
    SlackWebhook {
        url: Secret,
        plain: bool,
    },
    Slack {
        token: Secret,
        channel: String,
        api: Option<String>,
        plain: bool,
    },
    Webhook {
        url: Address,
        secret: Option<Secret>,
        plain: bool,
    },
    Email {
        smtp: String,
        tls: String,
        from: String,
        to: Vec<String>,
        login: Option<(String, Secret)>,
        authority: Option<PathBuf>,
        plain: bool,
    },
    #[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "without AWS there is an error in its place"))]
    Sns {
        topic: String,
        profile: Option<String>,
    },
}

impl Target {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Target::SlackWebhook { .. } | Target::Slack { .. } => "slack",
            Target::Webhook { .. } => "webhook",
            Target::Email { .. } => "email",
            Target::Sns { .. } => "sns",
        }
    }
}

/// Where a secret is.
#[derive(Debug)]
pub(crate) enum Secret {
    Environment(String),
    File(PathBuf),
}

#[derive(Debug)]
pub(crate) enum Address {
    Open(String),
    Secret(Secret),
}

pub(crate) fn interval(text: &str) -> CommandResult<Duration> {
    let length = parse_duration(text)?;
    let length = Duration::try_from(length).ok().filter(|length| *length >= Duration::from_secs(1));
    length.ok_or_else(|| CommandError::new(format!("`{text}` is shorter than a second")))
}

pub(crate) fn resolve_watch(raw: RawWatch) -> CommandResult<Watch> {
    let standard = Watch::default();
    let duration = |name: &str, text: Option<String>| {
        text.map(|text| interval(&text).map_err(|error| error.about(format!("`watch.{name}`")))).transpose()
    };
    let at_least_one = |name: &str, number: Option<usize>, standard: usize| match number {
        Some(0) => Err(CommandError::new(format!("`watch.{name}` must be at least 1"))),
        number => Ok(number.unwrap_or(standard)),
    };
    let jitter = match raw.jitter.as_deref() {
        Some("0s") => Some(Duration::ZERO),
        _ => duration("jitter", raw.jitter)?,
    };
    let damping = Damping {
        limit: at_least_one("flap_limit", raw.flap_limit, standard.damping.limit)?,
        window: duration("flap_window", raw.flap_window)?.unwrap_or(standard.damping.window),
        calm: duration("calm", raw.calm)?.unwrap_or(standard.damping.calm),
    };
    let mut quiet = Vec::new();
    for (at, one) in raw.quiet.into_iter().enumerate() {
        quiet.push(resolve_quiet(one).map_err(|error| error.about(format!("[[watch.quiet]] {}", at + 1)))?);
    }
    Ok(Watch {
        every: duration("every", raw.every)?.unwrap_or(standard.every),
        jitter,
        at_once: at_least_one("at_once", raw.at_once, standard.at_once)?,
        damping,
        give_up_after: duration("give_up_after", raw.give_up_after)?,
        quiet,
    })
}

fn resolve_quiet(raw: RawQuiet) -> CommandResult<Quiet> {
    const DAYS: [(&str, Weekday); 7] = [
        ("mon", Weekday::Monday),
        ("tue", Weekday::Tuesday),
        ("wed", Weekday::Wednesday),
        ("thu", Weekday::Thursday),
        ("fri", Weekday::Friday),
        ("sat", Weekday::Saturday),
        ("sun", Weekday::Sunday),
    ];
    let day = |text: &String| {
        let known = DAYS.iter().find(|(name, _)| *name == text.to_lowercase());
        known.map(|(_, day)| *day).ok_or_else(|| {
            CommandError::new(format!("`{text}` is not a day"))
                .hint("the days are mon, tue, wed, thu, fri, sat and sun")
        })
    };
    let time = |name: &str, text: &str| {
        let wrong = || CommandError::new(format!("`{name} = \"{text}\"` is not a time")).hint("write it like 22:30");
        let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<i8>().map_err(|_| wrong());
        Time::new(number(hour)?, number(minute)?, 0, 0).map_err(|_| wrong())
    };
    let name = raw.time_zone.as_deref().unwrap_or("UTC");
    let zone = TimeZone::get(name).map_err(|_| {
        CommandError::new(format!("`{name}` is not a time zone")).hint("write it like Europe/Berlin or UTC")
    })?;
    let then = match raw.then.as_deref() {
        None | Some("hold") => Then::Hold,
        Some("drop") => Then::Drop,
        Some(other) => {
            return Err(CommandError::new(format!("`then = \"{other}\"` is neither `hold` nor `drop`")));
        }
    };
    Ok(Quiet {
        days: raw.days.iter().map(day).collect::<CommandResult<_>>()?,
        from: time("from", &raw.from)?,
        to: time("to", &raw.to)?,
        zone,
        source: raw.source.map(Glob::new),
        then,
    })
}

/// A secret is named by exactly one of the two.
fn secret(name: &str, env: Option<String>, file: Option<PathBuf>) -> CommandResult<Option<Secret>> {
    match (env, file) {
        (None, None) => Ok(None),
        (Some(env), None) => Ok(Some(Secret::Environment(env))),
        (None, Some(file)) => Ok(Some(Secret::File(file))),
        _ => Err(CommandError::new(format!("give `{name}_env` or `{name}_file`, not both"))),
    }
}

pub(crate) fn resolve_notify(raw: RawNotify) -> CommandResult<Notify> {
    let name = raw.name.clone().unwrap_or_else(|| raw.kind.clone());
    let allowed = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "-_.".contains(char);
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        return Err(CommandError::new(format!("`{name}` is not a name"))
            .hint("a name has lower-case letters, digits, `-`, `_` and `.`"));
    }
    let level = raw.min_severity.as_deref().map(str::parse::<Severity>).transpose();
    let filter = raw.r#where.as_deref().map(Filter::new).transpose()?;
    if raw.at_most == Some(0) {
        return Err(CommandError::new("`at_most` must be at least 1"));
    }
    let (health, at_most) = (raw.health.unwrap_or(true), raw.at_most.unwrap_or(20));
    let min_severity = level.map_err(|error: SeverityError| CommandError::new(error.to_string()))?;
    let sources = raw.sources.iter().cloned().map(Glob::new).collect();
    let target = target(raw)?;
    Ok(Notify { name, min_severity, filter, sources, health, at_most, target })
}

fn target(raw: RawNotify) -> CommandResult<Target> {
    let members = [
        ("url", raw.url.is_some() || raw.url_env.is_some() || raw.url_file.is_some(), "slack webhook"),
        ("token_env or token_file", raw.token_env.is_some() || raw.token_file.is_some(), "slack"),
        ("channel", raw.channel.is_some(), "slack"),
        ("secret_env or secret_file", raw.secret_env.is_some() || raw.secret_file.is_some(), "webhook"),
        ("plain_http", raw.plain_http, "slack webhook"),
        ("smtp", raw.smtp.is_some(), "email"),
        ("tls", raw.tls.is_some(), "email"),
        ("from", raw.from.is_some(), "email"),
        ("to", !raw.to.is_empty(), "email"),
        ("username", raw.username.is_some(), "email"),
        ("password_env or password_file", raw.password_env.is_some() || raw.password_file.is_some(), "email"),
        ("ca_file", raw.ca_file.is_some(), "email"),
        ("plain_smtp", raw.plain_smtp, "email"),
        ("topic", raw.topic.is_some(), "sns"),
        ("profile", raw.profile.is_some(), "sns"),
    ];
    if !["slack", "webhook", "email", "sns"].contains(&raw.kind.as_str()) {
        return Err(CommandError::new(format!("`{}` is not a kind of channel", raw.kind))
            .hint("the kinds are slack, webhook, email and sns"));
    }
    if let Some((name, _, _)) = members.iter().find(|(_, given, of)| *given && !of.contains(raw.kind.as_str())) {
        return Err(CommandError::new(format!("`{name}` does not go with the kind `{}`", raw.kind)));
    }
    let missing = |name: &str| CommandError::new(format!("it needs `{name}`"));
    let hidden = secret("url", raw.url_env, raw.url_file)?;
    let plain = raw.plain_http;
    match raw.kind.as_str() {
        "slack" => match (hidden, secret("token", raw.token_env, raw.token_file)?) {
            (Some(url), None) if raw.url.is_none() && raw.channel.is_none() => Ok(Target::SlackWebhook { url, plain }),
            (None, Some(token)) => {
                let channel = raw.channel.ok_or_else(|| missing("channel"))?;
                Ok(Target::Slack { token, channel, api: raw.url, plain })
            }
            _ if raw.url.is_some() => Err(CommandError::new("the address of a Slack webhook is a secret")
                .hint("put it into an environment variable or a file, and name that with `url_env` or `url_file`")),
            _ => Err(CommandError::new("it needs either `url_env` or `url_file` for an incoming webhook")
                .hint("or `token_env` or `token_file` with `channel` for Slack's API, which has threads")),
        },
        "webhook" => {
            let url = match (raw.url, hidden) {
                (Some(url), None) => {
                    let after_host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                    if after_host.contains(['?', '@']) {
                        return Err(CommandError::new("an address with a query or a login in it is a secret")
                            .hint("name where it is with `url_env` or `url_file`"));
                    }
                    Address::Open(url)
                }
                (None, Some(url)) => Address::Secret(url),
                (None, None) => return Err(missing("url")),
                _ => return Err(CommandError::new("give one of `url`, `url_env` and `url_file`")),
            };
            Ok(Target::Webhook { url, secret: secret("secret", raw.secret_env, raw.secret_file)?, plain })
        }
        "email" => {
            let tls = raw.tls.unwrap_or_else(|| "starttls".into());
            if !["starttls", "tls", "none"].contains(&tls.as_str()) {
                return Err(CommandError::new(format!("`tls = \"{tls}\"` is none of `starttls`, `tls` and `none`")));
            }
            let login = match (raw.username, secret("password", raw.password_env, raw.password_file)?) {
                (None, None) => None,
                (Some(user), Some(password)) => Some((user, password)),
                _ => return Err(CommandError::new("`username` goes with `password_env` or `password_file`")),
            };
            Ok(Target::Email {
                smtp: raw.smtp.ok_or_else(|| missing("smtp"))?,
                tls,
                from: raw.from.ok_or_else(|| missing("from"))?,
                to: if raw.to.is_empty() { return Err(missing("to")) } else { raw.to },
                login,
                authority: raw.ca_file,
                plain: raw.plain_smtp,
            })
        }
        _ => Ok(Target::Sns { topic: raw.topic.ok_or_else(|| missing("topic"))?, profile: raw.profile }),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn quiet(days: &[&str], from: &str, to: &str, zone: &str) -> Quiet {
        let raw = RawQuiet {
            days: days.iter().map(|day| (*day).to_owned()).collect(),
            from: from.into(),
            to: to.into(),
            time_zone: Some(zone.into()),
            source: None,
            then: None,
        };
        resolve_quiet(raw).unwrap()
    }

    #[test]
    fn a_window_begins_on_its_day_and_may_end_on_the_next_in_its_own_time() {
        // 2026-03-27 is a Friday; on the 29th at 01:00 UTC clocks in Berlin go from two to three.
        for (days, from, to, zone, now, expected) in [
            (&["fri"][..], "22:00", "06:00", "UTC", "2026-03-27T22:00:00Z", true),
            (&["fri"], "22:00", "06:00", "UTC", "2026-03-28T05:59:00Z", true),
            (&["fri"], "22:00", "06:00", "UTC", "2026-03-28T06:00:00Z", false),
            (&["fri"], "22:00", "06:00", "UTC", "2026-03-27T05:00:00Z", false),
            (&["sat"], "22:00", "06:00", "UTC", "2026-03-28T05:00:00Z", false),
            (&[], "09:00", "17:00", "UTC", "2026-03-28T16:59:00Z", true),
            (&[], "09:00", "17:00", "UTC", "2026-03-28T08:59:00Z", false),
            (&["sun"], "00:00", "00:00", "UTC", "2026-03-29T12:00:00Z", true),
            (&["sun"], "00:00", "00:00", "UTC", "2026-03-30T00:00:00Z", false),
            (&[], "02:30", "04:00", "Europe/Berlin", "2026-03-28T01:45:00Z", true),
            (&[], "03:30", "04:00", "Europe/Berlin", "2026-03-29T01:45:00Z", true),
            (&[], "03:30", "04:00", "Europe/Berlin", "2026-03-30T02:45:00Z", false),
        ] {
            let found = quiet(days, from, to, zone).holds_at(now.parse().unwrap());
            assert_eq!(found, expected, "{days:?} {from}-{to} {zone} at {now}");
        }
    }

    #[test]
    fn holding_goes_before_dropping_and_a_window_may_be_of_one_source() {
        let mut watch = Watch::default();
        watch.quiet.push(Quiet { then: Then::Drop, ..quiet(&[], "00:00", "00:00", "UTC") });
        let now = "2026-03-27T22:00:00Z".parse().unwrap();
        assert_eq!(watch.quiet("dns/prod@x", now), Some(Then::Drop));
        let source = Some(Glob::new("dns/*".to_owned()));
        watch.quiet.push(Quiet { source, ..quiet(&[], "00:00", "00:00", "UTC") });
        assert_eq!(watch.quiet("dns/prod@x", now), Some(Then::Hold));
        assert_eq!(watch.quiet("inventory/prod", now), Some(Then::Drop));
    }

    #[test]
    fn a_channel_that_cannot_work_or_holds_a_secret_is_refused_when_it_is_read() {
        for (text, message) in [
            ("kind = 'fax'", "is not a kind"),
            ("kind = 'slack'\nurl = 'https://hooks.slack.com/services/x'", "is a secret"),
            ("kind = 'slack'", "it needs either"),
            ("kind = 'slack'\ntoken_env = 'T'", "it needs `channel`"),
            ("kind = 'webhook'", "it needs `url`"),
            ("kind = 'webhook'\nurl = 'https://h/x?token=1'", "is a secret"),
            ("kind = 'webhook'\nurl = 'https://u:p@h/x'", "is a secret"),
            ("kind = 'webhook'\nurl = 'https://h/x'\nsecret_env = 'A'\nsecret_file = 'b'", "not both"),
            ("kind = 'webhook'\nurl = 'https://h/x'\ntopic = 'a'", "does not go with"),
            ("kind = 'email'\nsmtp = 'h'\nfrom = 'a@b.c'", "it needs `to`"),
            ("kind = 'email'\nsmtp = 'h'\nfrom = 'a@b.c'\nto = ['x@y.z']\nusername = 'u'", "goes with `password_env`"),
            ("kind = 'email'\nsmtp = 'h'\nfrom = 'a@b.c'\nto = ['x@y.z']\ntls = 'maybe'", "is none of"),
            ("kind = 'sns'", "it needs `topic`"),
            ("kind = 'webhook'\nurl = 'https://h/x'\nwhere = 'type =='", "not a CEL expression"),
            ("kind = 'webhook'\nurl = 'https://h/x'\nmin_severity = 'worst'", "worst"),
            ("kind = 'webhook'\nurl = 'https://h/x'\nname = 'A b'", "is not a name"),
            ("kind = 'webhook'\nurl = 'https://h/x'\nat_most = 0", "at least 1"),
        ] {
            let error = resolve_notify(toml::from_str(text).unwrap()).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        for text in [
            "kind = 'slack'\nurl_env = 'HOOK'",
            "kind = 'slack'\ntoken_file = 'f'\nchannel = 'C1'\nurl = 'http://127.0.0.1:1/api'",
            "kind = 'webhook'\nurl = 'https://h/x'\nsecret_env = 'S'",
            "kind = 'email'\nsmtp = 'h:587'\nfrom = 'a@b.c'\nto = ['x@y.z']\nusername = 'u'\npassword_env = 'P'",
            "kind = 'sns'\ntopic = 'arn:aws:sns:us-east-1:1:t'\nprofile = 'p'",
        ] {
            assert!(resolve_notify(toml::from_str(text).unwrap()).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_window_that_is_none_is_refused() {
        for (text, message) in [
            ("[[quiet]]\nfrom = '25:00'\nto = '06:00'", "is not a time"),
            ("[[quiet]]\nfrom = '22'\nto = '06:00'", "is not a time"),
            ("[[quiet]]\nfrom = '22:00'\nto = '06:00'\ndays = ['someday']", "is not a day"),
            ("[[quiet]]\nfrom = '22:00'\nto = '06:00'\ntime_zone = 'Mars'", "is not a time zone"),
            ("[[quiet]]\nfrom = '22:00'\nto = '06:00'\nthen = 'shout'", "neither"),
            ("every = '0s'", "shorter than a second"),
            ("at_once = 0", "at least 1"),
        ] {
            let error = resolve_watch(toml::from_str(text).unwrap()).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
