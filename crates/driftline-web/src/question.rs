//! What an address asks, and the answer to it as a page or as JSON.

use serde::Serialize;

use crate::answers::{Answers, Refusal, RefusalKind};
use crate::api;
use crate::context::{Asked, Context, Problem, View};
use crate::drift_query::{DriftQuery, Facets};
use crate::live::Edition;
use crate::model::Resource;
use crate::page;

/// The longest point in time or id that is looked for.
const LONGEST: usize = 8_192;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Overview,
    Drift(DriftQuery),
    Resource(Which),
    Topology(Asked),
    Posture,
    Versions,
    Compare(Asked, DriftQuery),
    Rules,
}

/// How a resource is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Id(String),
    /// By the id of a finding about it, which is short.
    Finding(String),
}

impl Question {
    pub(crate) fn parse(view: View, raw: &str) -> Result<Self, Problem> {
        Ok(match view {
            View::Drift => Question::Drift(DriftQuery::parse(raw)?),
            View::Resource => Question::Resource(which(raw)?),
            View::Topology => Question::Topology(asked(raw, |_| false)?),
            View::Compare => {
                let query = DriftQuery::parse_except(raw, &["from", "to"])?;
                Question::Compare(asked(raw, |_| true)?, query)
            }
            _ => {
                if let Some((name, _)) = form_urlencoded::parse(raw.as_bytes()).next() {
                    return Err(unknown(&name).hint("this address has no parameters"));
                }
                match view {
                    View::Posture => Question::Posture,
                    View::Versions => Question::Versions,
                    View::Rules => Question::Rules,
                    _ => Question::Overview,
                }
            }
        })
    }

    /// Whether the answer has to be asked for, rather than being part of what is shown anyway.
    pub(crate) fn is_dear(&self) -> bool {
        !matches!(self, Question::Overview | Question::Drift(_) | Question::Rules)
    }

    /// The page; may block.
    pub(crate) fn page(
        &self,
        context: &Context<'_>,
        edition: &Edition,
        answers: &dyn Answers,
    ) -> Result<String, Refusal> {
        let snapshot = &edition.snapshot;
        if let Some(beginning) = snapshot.beginning.as_ref().filter(|beginning| !beginning.only_baseline) {
            return Ok(page::beginning(context, beginning));
        }
        Ok(match self {
            Question::Overview => page::overview(context, snapshot),
            Question::Drift(query) => {
                page::drift(context, snapshot, query, &query.apply(&snapshot.findings, edition.facets.clone()))
            }
            Question::Resource(which) => page::resource(context, &resource(which, edition, answers)?),
            Question::Topology(asked) => {
                page::topology(context, answers.topology(asked.from.as_deref(), asked.to.as_deref())?.as_ref(), asked)
            }
            Question::Posture => page::posture(context, answers.posture()?.as_ref()),
            Question::Versions => page::versions(context, &answers.versions()?),
            Question::Compare(asked, query) => {
                let (from, to) = both(asked)?;
                let between = answers.between(from, to)?;
                let facets = Facets::of(&between.findings).into();
                page::compare(context, asked, &between, query, &query.apply(&between.findings, facets))
            }
            Question::Rules => page::rules(context, snapshot),
        })
    }

    /// The same as JSON; may block.
    pub(crate) fn json(&self, edition: &Edition, answers: &dyn Answers) -> Result<Vec<u8>, Refusal> {
        let snapshot = &edition.snapshot;
        match self {
            Question::Overview => text(&api::Overview::of(snapshot)),
            Question::Drift(query) => {
                let sheet = query.apply(&snapshot.findings, edition.facets.clone());
                text(&api::DriftAnswer::of(snapshot, &sheet))
            }
            Question::Resource(which) => text(&resource(which, edition, answers)?),
            Question::Topology(asked) => text(answers.topology(asked.from.as_deref(), asked.to.as_deref())?.as_ref()),
            Question::Posture => text(answers.posture()?.as_ref()),
            Question::Versions => text(&api::VersionsAnswer { sources: answers.versions()? }),
            Question::Compare(asked, query) => {
                let (from, to) = both(asked)?;
                let between = answers.between(from, to)?;
                let sheet = query.apply(&between.findings, Facets::of(&between.findings).into());
                text(&api::CompareAnswer::of(asked, &between, &sheet))
            }
            Question::Rules => text(&api::RulesAnswer { revision: &snapshot.revision, rules: &snapshot.rules }),
        }
    }
}

fn text(value: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|error| crate::live::failed(&format!("the answer cannot be written: {error}")))
}

fn resource(which: &Which, edition: &Edition, answers: &dyn Answers) -> Result<Resource, Refusal> {
    match which {
        Which::Id(id) => answers.resource(id),
        Which::Finding(id) => {
            let found = edition.snapshot.findings.iter().find(|finding| finding.id == *id);
            let found = found.ok_or_else(|| Refusal {
                kind: RefusalKind::NotFound,
                message: "there is no such finding now".into(),
                hints: vec!["it may have been accepted or resolved; the list of drift has what there is".into()],
            })?;
            answers.resource(&found.canonical_id)
        }
    }
}

fn both(asked: &Asked) -> Result<(&str, &str), Refusal> {
    match (&asked.from, &asked.to) {
        (Some(from), Some(to)) => Ok((from, to)),
        _ => Err(Refusal {
            kind: RefusalKind::BadQuestion,
            message: "two points in time are compared, and one is missing".into(),
            hints: vec!["give `from` and `to`: v3, a time, now, or baseline:main".into()],
        }),
    }
}

fn unknown(name: &str) -> Problem {
    Problem::bad_question(format!("there is no parameter `{}`", crate::text::visible(name)))
}

/// A parameter that is given once, and is not too long.
fn once(slot: &mut Option<String>, name: &str, value: &str) -> Result<(), Problem> {
    if slot.is_some() {
        return Err(Problem::bad_question(format!("`{name}` is given twice")));
    }
    if value.len() > LONGEST {
        return Err(Problem::bad_question(format!("`{name}` is longer than {LONGEST} bytes")));
    }
    if !value.is_empty() {
        *slot = Some(value.to_owned());
    }
    Ok(())
}

fn asked(raw: &str, others: impl Fn(&str) -> bool) -> Result<Asked, Problem> {
    let mut asked = Asked::default();
    for (name, value) in form_urlencoded::parse(raw.as_bytes()) {
        match &*name {
            "from" => once(&mut asked.from, &name, &value)?,
            "to" => once(&mut asked.to, &name, &value)?,
            name if others(name) => {}
            name => return Err(unknown(name).hint("the parameters are from and to")),
        }
    }
    Ok(asked)
}

fn which(raw: &str) -> Result<Which, Problem> {
    let (mut id, mut finding) = (None, None);
    for (name, value) in form_urlencoded::parse(raw.as_bytes()) {
        match &*name {
            "id" => once(&mut id, &name, &value)?,
            "finding" => once(&mut finding, &name, &value)?,
            name => return Err(unknown(name).hint("the parameters are id and finding")),
        }
    }
    match (id, finding) {
        (Some(id), None) => Ok(Which::Id(id)),
        (None, Some(finding)) => Ok(Which::Finding(finding)),
        _ => Err(Problem::bad_question("a resource is named by `id`, or by `finding`")
            .hint("the list of drift has links to resources")),
    }
}
