//! The ways in, and what is shown when there is nothing to show: signing in, beginning, and being told no.

use maud::{Markup, html};

use super::findings::accept_fields;
use super::frame::{closed, document};
use super::words::{count, prose, sentence, shown_long};
use crate::context::{AcceptForm, Context, Problem, View};
use crate::model::Beginning;

pub(super) fn sign_in(context: &Context<'_>, failed: Option<&str>, next: &str) -> String {
    closed(
        context,
        "Sign in",
        &html! {
            h1 { "Sign in" }
            @if let Some(failed) = failed { p.warning role="alert" { (shown_long(failed)) } }
            form.sign-in method="post" action="/sign-in" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Token" }
                input #token type="password" name="token" required autocomplete="current-password" spellcheck="false";
                button type="submit" { "Sign in" }
            }
            p.why {
                "Whoever started " code { "driftline serve" }
                " has the token: it is in the file or the variable that was named there."
            }
        },
    )
}

/// Nothing to show yet, and what to do about it.
pub(super) fn beginning(context: &Context<'_>, beginning: &Beginning) -> String {
    document(
        context,
        &beginning.headline,
        &html! { h1 { (prose(&beginning.headline)) } div.begin { (steps(beginning)) } },
    )
}

/// The same on top of a view that is there, but has nothing to be held against.
pub(super) fn begin_box(beginning: Option<&Beginning>) -> Markup {
    html! {
        @if let Some(beginning) = beginning {
            section.begin aria-labelledby="begin" { h2 #begin { "What to do next" } (steps(beginning)) }
        }
    }
}

fn steps(beginning: &Beginning) -> Markup {
    html! {
        p { (prose(&beginning.text)) }
        ol {
            @for step in &beginning.steps {
                li { p { (prose(&step.say)) } pre tabindex="0" { code { (shown_long(&step.command)) } } }
            }
        }
    }
}

pub(super) fn problem(context: &Context<'_>, problem: &Problem) -> String {
    // What is only not there yet may come while the page is open.
    let context = if problem.status < 400 { context.clone() } else { nowhere(context) };
    document(&context, problem.title, &html! { (said(problem)) p { a href="/" { "To the overview" } } })
}

/// What did not work is no view: it has no JSON beside it, and nothing that could be brought up to date.
fn nowhere<'a>(context: &Context<'a>) -> Context<'a> {
    Context { view: View::Other, ..context.clone() }
}

fn said(problem: &Problem) -> Markup {
    html! {
        h1 { (shown_long(problem.title)) }
        @if !problem.detail.is_empty() { p.lead { (prose(&sentence(&problem.detail))) } }
        @if !problem.hints.is_empty() { ul.hints { @for hint in &problem.hints { li { (prose(&sentence(hint))) } } } }
        @if problem.status >= 400 { p.why { "Status " (problem.status) } }
    }
}

/// Accepting did not work: what was typed and selected is still there.
pub(super) fn accept_again(context: &Context<'_>, failed: &Problem, form: &AcceptForm) -> String {
    let context = &nowhere(context);
    document(
        context,
        failed.title,
        &html! {
            (said(failed))
            @if context.may_write && !form.findings.is_empty() {
                form.select method="post" action="/accept" {
                    @for finding in &form.findings { input type="hidden" name="finding" value=(finding); }
                    fieldset.accept {
                        legend { "Try again with " (count(form.findings.len(), "finding")) }
                        (accept_fields(context, &form.reason, &form.by, &form.back))
                        button type="submit" { "Accept" }
                    }
                }
            } @else if !form.reason.is_empty() {
                p { "What you wrote: " q { (shown_long(&form.reason)) } }
            }
            p { a href=(local(&form.back)) { "Back to where you were" } }
        },
    )
}

/// Only ever an address of ours.
fn local(back: &str) -> &str {
    let is_ours = back.starts_with('/') && !back.starts_with("//") && !back.contains(['\\', '\r', '\n', '\t']);
    if is_ours { back } else { "/drift" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_back_never_leads_to_somebody_else() {
        for (back, is_ours) in [
            ("/drift?status=drifted", true),
            ("/", true),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("/\t/evil.example", false),
            ("https://evil.example", false),
            ("javascript:alert(1)", false),
            ("", false),
        ] {
            assert_eq!(local(back) == back, is_ours, "{back}");
        }
    }
}
