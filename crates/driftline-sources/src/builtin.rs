//! What Driftline knows of the things it is shown: values that change by themselves, and where secrets are.

use driftline_core::rule::{Glob, Subject};
use driftline_core::seal::SecretPath;
use driftline_core::{Origin, Rule, RuleKind};

/// Rules that are in force without being asked for.
pub fn rules() -> Vec<Rule> {
    const VOLATILE: &[(&str, &str, &str)] = &[
        ("*", "/**/evaluatedAt", "when a compliance rule last ran is not a state of the resource"),
        ("*", "/**/approximateMessageCount", "the number of messages waiting changes with every message"),
    ];
    let rule = |(kind, path, reason): &(&str, &str, &str)| Rule {
        subject: Subject { kind: Some(Glob::new(*kind)), ..Subject::default() },
        path: path.parse().expect("a pattern written above"),
        kind: RuleKind::Volatile,
        origin: Origin::Builtin,
        reason: (*reason).to_owned(),
    };
    VOLATILE.iter().map(rule).collect()
}

/// What Driftline seals unasked.
pub fn secrets() -> Vec<SecretPath> {
    const PATHS: &[(&str, &str)] =
        &[("AWS::Lambda::Function", "/environment/variables/*"), ("AWS::Lambda::Function", "/Environment/Variables/*")];
    let path = |(kind, path): &(&str, &str)| SecretPath {
        kind: Glob::new(*kind),
        path: path.parse().expect("a pattern written above"),
    };
    PATHS.iter().map(path).collect()
}
