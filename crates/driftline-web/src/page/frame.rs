//! What every page has around it: landmarks, the way to the other views, what the script needs.

use maud::{DOCTYPE, Markup, html};

use super::words::{shown, shown_long, stamp};
use crate::context::{Context, View};

const VIEWS: [(View, &str, &str); 6] = [
    (View::Overview, "/", "Overview"),
    (View::Drift, "/drift", "Drift"),
    (View::Topology, "/topology", "Topology"),
    (View::Posture, "/posture", "Posture"),
    (View::Versions, "/versions", "Versions"),
    (View::Rules, "/rules", "Rules"),
];

/// A whole document. The headline is the first thing on the page and the first thing in its title.
pub(super) fn document(context: &Context<'_>, headline: &str, main: &Markup) -> String {
    around(context, headline, &navigation(context), main)
}

/// The same for whoever may not see anything yet.
pub(super) fn closed(context: &Context<'_>, headline: &str, main: &Markup) -> String {
    around(context, headline, &html! {}, main)
}

fn around(context: &Context<'_>, headline: &str, navigation: &Markup, main: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="same-origin";
                title { (shown(headline)) " · Driftline" }
                link rel="icon" href=(context.icon) type="image/svg+xml";
                link rel="stylesheet" href=(context.style);
                script src=(context.script) defer {}
            }
            body data-revision=[(context.view != View::Other).then_some(context.revision)] {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href="/" { "Driftline" }
                    (navigation)
                }
                p #live role="status" aria-live="polite" {}
                main #main tabindex="-1" {
                    @if let Some(warning) = context.warning {
                        p.warning role="alert" { (shown_long(warning)) }
                    }
                    @if let Some(notice) = context.notice {
                        p.notice role="status" { (shown_long(notice)) }
                    }
                    (main)
                }
                (footer(context))
            }
        }
    }
    .into_string()
}

fn navigation(context: &Context<'_>) -> Markup {
    html! {
        nav aria-label="Views" {
            ul {
                @for (view, path, name) in VIEWS {
                    li { a href=(path) aria-current=[(view == shown_in(context.view)).then_some("page")] { (name) } }
                }
            }
        }
        @if context.signed_in {
            form.sign-out method="post" action="/sign-out" {
                input type="hidden" name="csrf" value=(context.csrf);
                button type="submit" { "Sign out" }
            }
        }
    }
}

/// The view in whose place of the navigation a page is.
fn shown_in(view: View) -> View {
    match view {
        View::Resource => View::Drift,
        View::Compare => View::Versions,
        view => view,
    }
}

fn footer(context: &Context<'_>) -> Markup {
    html! {
        footer.foot {
            p {
                "Shown " time datetime=(context.now) { (stamp(context.now)) } " by " (shown(context.program)) ". "
                @if let Some(json) = json_of(context) { a href=(json) { "This page as JSON" } " " }
                button #keys type="button" hidden { "Keyboard" }
            }
            dialog #help aria-labelledby="help-title" {
                h2 #help-title { "Keyboard" }
                dl {
                    @for (key, does) in [
                        ("/", "to the search field"),
                        ("j", "to the next row"),
                        ("k", "to the row before"),
                        ("x", "select the row, or no longer"),
                        ("Enter", "open the row"),
                        ("?", "this list"),
                    ] {
                        div { dt { kbd { (key) } } dd { (does) } }
                    }
                }
                label { input #use-keys type="checkbox" checked; " Use these keys" }
                form method="dialog" { button type="submit" { "Close" } }
            }
        }
    }
}

/// Where the same is told as JSON: below the same path with the same query.
fn json_of(context: &Context<'_>) -> Option<String> {
    match context.view {
        View::Other => None,
        View::Overview => Some("/api/v1/overview".to_owned()),
        _ => Some(format!("/api/v1{}", context.url)),
    }
}
