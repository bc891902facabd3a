//! The pages: pure functions from answers to HTML.
//!
//! Every page works without its script, carries no script and no style of its own, and bounds what it lists. Its first
//! line says what is wrong or that nothing is, and how much was not looked at.

use crate::context::{AcceptForm, Asked, Context, Problem};
use crate::drift_query::{DriftQuery, Sheet};
use crate::model::{Beginning, Between, Posture, Resource, Snapshot, SourceVersions, Topology};

mod chart;
mod diff;
mod drift;
mod entry;
mod findings;
mod frame;
mod overview;
mod posture;
mod resource;
mod rules;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
mod topology;
mod versions;
mod words;

pub fn overview(context: &Context<'_>, snapshot: &Snapshot) -> String {
    overview::overview(context, snapshot)
}

pub fn drift(context: &Context<'_>, snapshot: &Snapshot, query: &DriftQuery, sheet: &Sheet<'_>) -> String {
    drift::drift(context, snapshot, query, sheet)
}

pub fn resource(context: &Context<'_>, resource: &Resource) -> String {
    resource::resource(context, resource)
}

pub fn topology(context: &Context<'_>, topology: &Topology, asked: &Asked) -> String {
    topology::topology(context, topology, asked)
}

pub fn posture(context: &Context<'_>, posture: &Posture) -> String {
    posture::posture(context, posture)
}

pub fn versions(context: &Context<'_>, sources: &[SourceVersions]) -> String {
    versions::versions(context, sources)
}

pub fn compare(
    context: &Context<'_>,
    asked: &Asked,
    between: &Between,
    query: &DriftQuery,
    sheet: &Sheet<'_>,
) -> String {
    drift::compare(context, asked, between, query, sheet)
}

pub fn rules(context: &Context<'_>, snapshot: &Snapshot) -> String {
    rules::rules(context, snapshot)
}

/// There is nothing to show yet.
pub fn beginning(context: &Context<'_>, beginning: &Beginning) -> String {
    entry::beginning(context, beginning)
}

pub fn sign_in(context: &Context<'_>, failed: Option<&str>, next: &str) -> String {
    entry::sign_in(context, failed, next)
}

pub fn problem(context: &Context<'_>, problem: &Problem) -> String {
    entry::problem(context, problem)
}

/// Accepting did not work; what was typed is kept.
pub fn accept_again(context: &Context<'_>, failed: &Problem, form: &AcceptForm) -> String {
    entry::accept_again(context, failed, form)
}
