//! What every page is told besides its own answer.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// Which of the views a page is, for the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    Overview,
    Drift,
    Resource,
    Topology,
    Posture,
    Versions,
    Compare,
    Rules,
    /// None of them: signing in, errors.
    Other,
}

/// Where a page stands: who asks, what they may, and what the rest of the program says.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    pub view: View,
    /// Cut to the minute, so that what is rendered can be kept that long.
    pub now: Timestamp,
    /// What the page shows. It is compared with what `/events` says.
    pub revision: &'a str,
    /// Name and version of the program.
    pub program: &'a str,
    pub may_write: bool,
    /// Why nothing can be accepted here, where that is so.
    pub why_not_write: Option<&'a str>,
    /// Goes with every form that is posted, as `csrf`.
    pub csrf: &'a str,
    pub signed_in: bool,
    /// Whoever accepts, as far as it is known: what the field `by` begins with.
    pub who: Option<&'a str>,
    /// Path and query of this page.
    pub url: &'a str,
    /// What was just done; told once.
    pub notice: Option<&'a str>,
    /// What is wrong with what is shown, e.g. that it could not be brought up to date.
    pub warning: Option<&'a str>,
    /// The addresses of the style, the script and the icon.
    pub style: &'a str,
    pub script: &'a str,
    pub icon: &'a str,
}

/// Two points in time as they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub from: Option<String>,
    pub to: Option<String>,
}

/// Something that did not work, for people and (as `application/problem+json`) for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// What kind of problem: always `about:blank`, which means that the status says it.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
    pub detail: String,
    /// What to do next.
    pub hints: Vec<String>,
}

impl Problem {
    pub fn new(status: u16, title: &'static str, detail: impl Into<String>) -> Self {
        Self { kind: "about:blank", title, status, detail: detail.into(), hints: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The question cannot be understood.
    pub fn bad_question(detail: impl Into<String>) -> Self {
        Self::new(400, "Bad question", detail)
    }
}

/// What somebody typed into the form that accepts findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptForm {
    /// Tickets.
    pub findings: Vec<String>,
    pub reason: String,
    pub by: String,
    /// The page to go back to.
    pub back: String,
}
