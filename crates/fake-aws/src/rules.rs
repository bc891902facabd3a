//! Rules as data: which calls, when, and what is done to them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::dialect::{Refusal, Said};
use crate::listing::Paging;
use crate::request::Asked;

/// One rule. The first rule that refuses decides; what changes replies (`page`, `slow`, `in_progress`) adds up.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(default, rename = "match")]
    pub matching: Match,
    #[serde(default)]
    pub when: When,
    #[serde(rename = "do")]
    pub action: Action,
}

/// Which calls. What is left out matches anything; `*` matches any number of characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    pub service: Option<String>,
    pub operation: Option<String>,
    pub region: Option<String>,
    pub account: Option<String>,
}

impl Match {
    pub fn covers(&self, asked: &Asked, account: &str) -> bool {
        let fits = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|it| glob(it, text));
        fits(&self.service, &asked.service)
            && fits(&self.operation, &asked.operation)
            && fits(&self.region, &asked.region)
            && fits(&self.account, account)
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|tail| {
            tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| glob(rest, &tail[at..]))
        }),
    }
}

/// On which of the calls that match. All conditions must hold; without any, on every one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// In this share of calls, chosen by the seed: the n-th call of the same operation in the same place always meets
    /// the same fate, whatever else runs beside it.
    pub probability: Option<f64>,
    /// On these calls of all that match, counted from one.
    pub calls: Option<Vec<u64>>,
    /// On calls with a page token, or only on those without.
    pub later_page: Option<bool>,
    /// For this long after the rule was set.
    pub for_ms: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A refusal in the service's own words. The emulator never hears of the call.
    Refuse(Refusal),
    /// A refusal in these words.
    Error(Said),
    /// An HTML page with status 500.
    Html,
    /// The connection is closed before anything is done.
    Unreachable,
    /// The emulator does it, and the connection is closed before the reply.
    LoseReply,
    /// The connection is closed in the middle of the reply.
    CutReply,
    /// The reply comes this much later.
    Slow { ms: u64 },
    /// A listing in pages, although the emulator gives it whole.
    Page(Paging),
    /// The emulator does not hear of the conditions of a request, as a server that knows none.
    Unconditional,
    /// The answer is the one that was true so long ago: a listing that lags behind what was written.
    Lag { ms: u64 },
    /// What was just written is `InProgress` for so many reads (CloudFront).
    InProgress { gets: u32 },
}

impl Action {
    /// How it is counted.
    pub fn name(&self) -> String {
        match self {
            Self::Refuse(refusal) => refusal.name().to_owned(),
            Self::Error(said) => said.code.clone(),
            Self::Html => "html".to_owned(),
            Self::Unreachable => "unreachable".to_owned(),
            Self::LoseReply => "lost".to_owned(),
            Self::CutReply => "cut".to_owned(),
            Self::Slow { .. } => "slow".to_owned(),
            Self::Unconditional => "unconditional".to_owned(),
            Self::Lag { .. } => "lag".to_owned(),
            Self::Page(_) => "page".to_owned(),
            Self::InProgress { .. } => "in_progress".to_owned(),
        }
    }
}

/// The rules in force, and how often each was met.
#[derive(Debug, Default)]
pub struct RuleBook {
    seed: u64,
    rules: Vec<Set>,
    seen: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Set {
    rule: Rule,
    since: Instant,
    met: u64,
}

impl RuleBook {
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Takes these rules instead of those in force; counting starts anew.
    pub fn replace(&mut self, rules: Vec<Rule>, now: Instant) {
        self.rules = rules.into_iter().map(|rule| Set { rule, since: now, met: 0 }).collect();
        self.seen.clear();
    }

    pub fn add(&mut self, rule: Rule, now: Instant) {
        self.rules.push(Set { rule, since: now, met: 0 });
    }

    /// What is to be done to this call, in the order of the rules.
    pub fn decide(&mut self, asked: &Asked, account: &str, now: Instant) -> Vec<Action> {
        let call = format!("{} {} {} {account}", asked.service, asked.operation, asked.region);
        let nth = self.seen.entry(call.clone()).and_modify(|count| *count += 1).or_insert(1);
        let mut actions = Vec::new();
        for (index, set) in self.rules.iter_mut().enumerate() {
            if !set.rule.matching.covers(asked, account) {
                continue;
            }
            let when = &set.rule.when;
            if when.later_page.is_some_and(|wanted| wanted != asked.is_later_page()) {
                continue;
            }
            set.met += 1;
            let in_time = when.for_ms.is_none_or(|ms| now.duration_since(set.since) < Duration::from_millis(ms));
            let in_turn = when.calls.as_ref().is_none_or(|calls| calls.contains(&set.met));
            let by_chance = when.probability.is_none_or(|share| chance(self.seed, index, &call, *nth) < share);
            if in_time && in_turn && by_chance {
                actions.push(set.rule.action.clone());
            }
        }
        actions
    }
}

/// A number from 0 to 1 that depends on nothing but these.
#[expect(clippy::cast_precision_loss, reason = "53 bits are chosen so that they fit")]
fn chance(seed: u64, rule: usize, call: &str, nth: u64) -> f64 {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut mix = |value: u64| {
        // splitmix64: each input moves the state, and the state is stirred.
        state = state.wrapping_add(value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
    };
    mix(rule as u64);
    call.bytes().for_each(|byte| mix(u64::from(byte)));
    mix(nth);
    (state >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[expect(clippy::disallowed_methods, reason = "a moment to count from")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::tests::ask;

    fn vpcs() -> Asked {
        let form = ("content-type", "application/x-www-form-urlencoded");
        ask("ec2", &[form], "POST", "/", "Action=DescribeVpcs")
    }

    fn book(rules: serde_json::Value) -> RuleBook {
        let mut book = RuleBook::new(1);
        book.replace(serde_json::from_value(rules).unwrap(), Instant::now());
        book
    }

    fn names(book: &mut RuleBook, asked: &Asked) -> Vec<String> {
        book.decide(asked, "111111111111", Instant::now()).iter().map(Action::name).collect()
    }

    #[test]
    fn a_rule_covers_what_it_names_and_nothing_else() {
        let rows = [
            (json!({}), true),
            (json!({"service": "ec2"}), true),
            (json!({"service": "sqs"}), false),
            (json!({"operation": "Describe*"}), true),
            (json!({"operation": "*Vpcs"}), true),
            (json!({"operation": "D*V*s"}), true),
            (json!({"operation": "Describe"}), false),
            (json!({"region": "eu-*"}), true),
            (json!({"region": "us-east-1"}), false),
            (json!({"account": "111111111111"}), true),
            (json!({"account": "222222222222"}), false),
        ];
        for (matching, covers) in rows {
            let mut book = book(json!([{"match": matching, "do": {"refuse": "throttle"}}]));
            assert_eq!(!names(&mut book, &vpcs()).is_empty(), covers, "{matching}");
        }
    }

    #[test]
    fn the_nth_call_is_counted_among_those_that_match() {
        let mut book = book(json!([{"match": {"service": "ec2"}, "when": {"calls": [2]}, "do": "html"}]));
        let other = ask("lambda", &[], "GET", "/2015-03-31/functions", "");
        let met: Vec<bool> =
            [&vpcs(), &other, &vpcs(), &vpcs()].map(|asked| !names(&mut book, asked).is_empty()).into();
        assert_eq!(met, [false, false, true, false]);
    }

    #[test]
    fn chance_is_the_share_asked_for_and_the_same_again_with_the_same_seed() {
        let run = |seed: u64| -> Vec<bool> {
            let mut book = RuleBook::new(seed);
            let rules = json!([{"when": {"probability": 0.3}, "do": {"refuse": "throttle"}}]);
            book.replace(serde_json::from_value(rules).unwrap(), Instant::now());
            (0..2_000).map(|_| !names(&mut book, &vpcs()).is_empty()).collect()
        };
        let first = run(7);
        let hits = first.iter().filter(|hit| **hit).count();
        assert!((540..660).contains(&hits), "{hits} of 2,000");
        assert_eq!(run(7), first);
        assert_ne!(run(8), first);
    }

    #[test]
    fn a_rule_for_later_pages_leaves_the_first_alone() {
        let mut book = book(json!([{"when": {"later_page": true}, "do": {"refuse": "bad_token"}}]));
        assert!(names(&mut book, &vpcs()).is_empty());
        let form = ("content-type", "application/x-www-form-urlencoded");
        let second = ask("ec2", &[form], "POST", "/", "Action=DescribeVpcs&NextToken=x");
        assert_eq!(names(&mut book, &second), ["bad_token"]);
    }

    #[test]
    fn a_rule_with_an_end_ends() {
        let mut book = book(json!([{"when": {"for_ms": 50}, "do": "unreachable"}]));
        let start = Instant::now();
        assert_eq!(book.decide(&vpcs(), "1", start).len(), 1);
        assert!(book.decide(&vpcs(), "1", start + Duration::from_millis(100)).is_empty());
    }
}
