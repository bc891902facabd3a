//! A report as JUnit's XML: a suite per source, a case per resource in question.

use std::collections::BTreeMap;

use driftline_core::verdict::Status;

use super::telling::{Telling, Told};
use crate::output::{count, xml};

/// How many changes of one resource are listed.
const CHANGES: usize = 50;

/// The whole document.
pub(super) fn suites(telling: &Telling<'_>) -> String {
    let mut by_source: BTreeMap<&str, Vec<&Told<'_>>> =
        telling.sources.iter().map(|source| (source.name.as_str(), Vec::new())).collect();
    for told in &telling.findings {
        by_source.entry(told.source).or_default().push(told);
    }
    let all = Counts::of(telling.findings.iter());
    let name = format!("driftline {}", telling.title.to_lowercase());
    let mut out =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{name}\"{}>\n", all.attributes());
    for (source, cases) in by_source {
        let of = telling.sources.iter().find(|known| known.name == source);
        let taken = of.and_then(|of| of.taken_at).map(|at| format!(" timestamp=\"{at}\"")).unwrap_or_default();
        let counts = Counts::of(cases.iter().copied()).attributes();
        out += &format!("  <testsuite name=\"{}\"{counts}{taken}>\n", xml(source));
        out += "    <properties>\n";
        out += &format!("      <property name=\"against\" value=\"{}\"/>\n", xml(&telling.exact));
        if let Some(version) = of.and_then(|of| of.version) {
            out += &format!("      <property name=\"version\" value=\"{version}\"/>\n");
        }
        out += "    </properties>\n";
        for told in cases {
            out += &case(told);
        }
        out += "  </testsuite>\n";
    }
    out + "</testsuites>\n"
}

#[derive(Clone, Copy, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    skipped: usize,
}

impl Counts {
    fn of<'t, 'a: 't>(list: impl Iterator<Item = &'t Told<'a>>) -> Self {
        let mut counts = Self::default();
        for told in list {
            counts.tests += 1;
            counts.failures += usize::from(fails(told));
            counts.skipped += usize::from(told.status == Status::NotChecked);
        }
        counts
    }

    fn attributes(self) -> String {
        let Self { tests, failures, skipped } = self;
        format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"")
    }
}

/// Drift fails; what is only new fails where `--fail-on` says so.
fn fails(told: &Told<'_>) -> bool {
    told.status == Status::Drifted || (told.status == Status::Unknown && told.gates)
}

fn case(told: &Told<'_>) -> String {
    let place = if told.place.is_empty() { String::new() } else { format!(" ({})", told.place) };
    let name = xml(&format!("{}{place}", told.id));
    let start = format!("    <testcase classname=\"{}\" name=\"{name}\" time=\"0\"", xml(told.kind));
    match told.status {
        Status::NotChecked => {
            let reason = xml(told.reason.unwrap_or("one side did not look"));
            format!("{start}>\n      <skipped message=\"not checked: {reason}\"/>\n    </testcase>\n")
        }
        _ if fails(told) => format!(
            "{start}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
            told.word(),
            xml(&headline(told)),
            xml(&body(told))
        ),
        Status::Unknown => {
            let out = xml("unknown: it is there now, and not in the baseline");
            format!("{start}>\n      <system-out>{out}</system-out>\n    </testcase>\n")
        }
        _ => format!("{start}/>\n"),
    }
}

fn headline(told: &Told<'_>) -> String {
    let level = told.severity.map(|level| format!(" ({level})")).unwrap_or_default();
    match told.changes.len() {
        0 => format!("{}{level}", told.word()),
        many => format!("{}{level}: {}", told.word(), count(many, "change")),
    }
}

fn body(told: &Told<'_>) -> String {
    told.lines(CHANGES).join("\n")
}

#[cfg(test)]
mod tests {
    use crate::output::xml;

    #[test]
    fn what_xml_cannot_have_is_shown() {
        assert_eq!(xml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
        assert_eq!(xml("\u{0}\u{1b}[2J\u{ffff}\u{202e}"), "\\u{0}\\u{1b}[2J\\u{ffff}\\u{202e}");
        assert_eq!(xml("]]>"), "]]&gt;");
        assert_eq!(xml("two\nlines, ünïcode, 😀"), "two\nlines, ünïcode, 😀");
    }
}
