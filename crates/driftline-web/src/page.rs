//! Answers as HTML: pure functions from what is told to a whole document.

use crate::context::{AcceptForm, Asked, Context, Problem};
use crate::drift_query::{DriftQuery, Sheet};
use crate::model::{Beginning, Between, Posture, Resource, Snapshot, SourceVersions, Topology};

fn document(context: &Context<'_>, title: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><link rel=\"stylesheet\" \
         href=\"{}\"></head><body><main><h1>{title}</h1></main></body></html>",
        context.style
    )
}

pub fn overview(context: &Context<'_>, _: &Snapshot) -> String {
    document(context, "Overview")
}

pub fn drift(context: &Context<'_>, _: &Snapshot, _: &DriftQuery, _: &Sheet<'_>) -> String {
    document(context, "Drift")
}

pub fn resource(context: &Context<'_>, _: &Resource) -> String {
    document(context, "Resource")
}

pub fn topology(context: &Context<'_>, _: &Topology, _: &Asked) -> String {
    document(context, "Topology")
}

pub fn posture(context: &Context<'_>, _: &Posture) -> String {
    document(context, "Posture")
}

pub fn versions(context: &Context<'_>, _: &[SourceVersions]) -> String {
    document(context, "Versions")
}

pub fn compare(context: &Context<'_>, _: &Asked, _: &Between, _: &DriftQuery, _: &Sheet<'_>) -> String {
    document(context, "Compare")
}

pub fn rules(context: &Context<'_>, _: &Snapshot) -> String {
    document(context, "Rules")
}

pub fn beginning(context: &Context<'_>, _: &Beginning) -> String {
    document(context, "Welcome")
}

pub fn sign_in(context: &Context<'_>, _: Option<&str>, _: &str) -> String {
    document(context, "Sign in")
}

pub fn problem(context: &Context<'_>, _: &Problem) -> String {
    document(context, "Problem")
}

pub fn accept_again(context: &Context<'_>, _: &Problem, _: &AcceptForm) -> String {
    document(context, "Not accepted")
}
