//! Every page, read as a browser reads it.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use driftline_core::text::{is_hidden, visible};
use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

use super::sample::{Sample, context};
use crate::context::View;
use crate::drift_query::{DriftQuery, Facets, USUAL_LIMIT};

/// Texts that mean harm, or that merely happen.
const NASTY: [&str; 14] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "</textarea></title></style></script><b>",
    "<!-- --><![CDATA[ ]]>",
    "null",
    "",
    "a\u{202e}gpj.exe\u{2066}\u{200b}\u{feff}",
    "one\r\ntwo\u{0}\u{1b}[31m\u{7f}\u{85}",
    "{{7*7}} ${7*7} <%= 7*7 %> #{7*7} @if (x) { y }",
    "&lt;b&gt; &amp;amp; &#x3c;",
    "//evil.example/?a=b&c=d#e",
    "日本語 ünïcode 🦀 \u{1f3f4}\u{e0067}",
];

#[derive(Debug)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
}

struct Read {
    elements: Vec<Element>,
    texts: Vec<String>,
    errors: Vec<String>,
}

fn read(html: &str) -> Read {
    let dom = parse_document(RcDom::default(), ParseOpts::default()).one(html);
    let mut read = Read { elements: Vec::new(), texts: Vec::new(), errors: Vec::new() };
    walk(&dom.document, &mut read);
    read.errors = dom.errors.borrow().iter().map(ToString::to_string).collect();
    read
}

fn walk(node: &Handle, read: &mut Read) {
    match &node.data {
        NodeData::Element { name, attrs, .. } => read.elements.push(Element {
            name: name.local.to_string(),
            attributes: attrs.borrow().iter().map(|it| (it.name.local.to_string(), it.value.to_string())).collect(),
        }),
        NodeData::Text { contents } => read.texts.push(contents.borrow().to_string()),
        NodeData::Comment { contents } => panic!("a comment that is not ours: {contents}"),
        _ => {}
    }
    for child in node.children.borrow().iter() {
        walk(child, read);
    }
}

/// How often each element with each set of attributes is there. Where ids may be broken is no structure.
fn structure(read: &Read) -> BTreeMap<(String, Vec<String>), usize> {
    let mut counts = BTreeMap::new();
    for element in read.elements.iter().filter(|element| element.name != "wbr") {
        *counts.entry((element.name.clone(), element.attributes.keys().cloned().collect())).or_default() += 1;
    }
    counts
}

#[test]
fn no_text_from_outside_becomes_an_element_or_an_attribute() {
    let honest: Vec<_> = Sample(None).pages().iter().map(|(_, html)| structure(&read(html))).collect();
    for nasty in NASTY {
        for ((name, html), honest) in Sample(Some(nasty)).pages().iter().zip(&honest) {
            let nasty_structure = structure(&read(html));
            // Rows that a nasty filter leaves out are missing; nothing is there that an honest page does not have.
            for (element, count) in &nasty_structure {
                let usual =
                    honest.get(element).copied().unwrap_or_else(|| panic!("{name}, {nasty:?}: {element:?} is new"));
                // A text may be what is usually left away, and is then one choice more.
                assert!(*count <= usual + 2, "{name}, {nasty:?}: {element:?} {count} times, not {usual}");
            }
        }
    }
}

#[test]
fn what_cannot_be_seen_is_shown_and_everything_else_as_it_is() {
    for nasty in NASTY {
        for (name, html) in Sample(Some(nasty)).pages() {
            let read = read(&html);
            let spoken = read.elements.iter().flat_map(|element| {
                ["title", "aria-label", "placeholder"].into_iter().filter_map(|name| element.attributes.get(name))
            });
            for text in read.texts.iter().chain(spoken) {
                assert!(!text.chars().any(|char| is_hidden(char) && char != '\n'), "{name}: {text:?}");
            }
            // Messages begin with a capital.
            let all: String = read.texts.concat().to_lowercase();
            assert!(name == "sign in" || all.contains(&visible(nasty).to_lowercase()), "{name} does not say {nasty:?}");
        }
    }
}

#[test]
fn a_page_has_no_script_or_style_of_its_own_and_leads_nowhere_else() {
    for nasty in NASTY.into_iter().map(Some).chain([None]) {
        for (name, html) in Sample(nasty).pages() {
            for element in read(&html).elements {
                let source = element.attributes.get("src");
                assert!(
                    element.name != "script" || source.is_some_and(|source| source == "/assets/script.js"),
                    "{name}"
                );
                assert!(
                    !["style", "iframe", "object", "embed", "base", "img"].contains(&element.name.as_str()),
                    "{name}"
                );
                for (attribute, value) in &element.attributes {
                    assert!(!attribute.starts_with("on") && attribute != "style", "{name}: {attribute}");
                    if ["href", "action", "src", "formaction"].contains(&attribute.as_str()) {
                        let ours = value.starts_with('#') || (value.starts_with('/') && !value.starts_with("//"));
                        assert!(ours, "{name}: {attribute}={value:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_page_is_well_formed_and_has_its_landmarks() {
    for (name, html) in Sample(None).pages() {
        let read = read(&html);
        assert!(read.errors.is_empty(), "{name}: {:?}", read.errors);
        let count = |wanted: &str| read.elements.iter().filter(|element| element.name == wanted).count();
        for landmark in ["main", "h1", "header", "footer", "title"] {
            let usual = if landmark == "title" { count("title") } else { 1 };
            assert_eq!(count(landmark), usual.max(1), "{name}: {landmark}");
        }
        let ids: Vec<&String> = read.elements.iter().filter_map(|element| element.attributes.get("id")).collect();
        let unique: BTreeSet<&&String> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{name}: an id is there twice");
        for element in &read.elements {
            for reference in ["for", "aria-labelledby", "list"] {
                let Some(id) = element.attributes.get(reference) else { continue };
                assert!(ids.contains(&id), "{name}: {reference}={id} leads to nothing");
            }
        }
    }
}

#[test]
fn names_of_ten_kilobytes_are_cut_and_counted() {
    let long = "n".repeat(10_240);
    for (name, html) in Sample(Some(&long)).pages() {
        let read = read(&html);
        assert!(read.texts.iter().all(|text| text.len() < 5_000), "{name}");
        assert!(html.len() < 600_000, "{name} has {} bytes", html.len());
    }
}

#[test]
fn the_first_page_of_thousands_of_findings_weighs_less_than_a_hundred_kilobytes() {
    let snapshot = Sample(None).snapshot(30_000);
    let query = DriftQuery::default();
    let sheet = query.apply(&snapshot.findings, Arc::new(Facets::of(&snapshot.findings)));
    let drift = super::drift(&context(View::Drift, "/drift"), &snapshot, &query, &sheet);
    let overview = super::overview(&context(View::Overview, "/"), &snapshot);
    let beside = include_str!("../../assets/style.css").len() + include_str!("../../assets/script.js").len();
    assert_eq!(sheet.rows.len(), USUAL_LIMIT);
    for (name, page) in [("drift", drift), ("overview", overview)] {
        let weight = page.len() + beside;
        assert!(weight < 100_000, "{name} weighs {weight} bytes");
    }
}

#[test]
fn rows_can_be_selected_only_where_something_can_be_accepted() {
    let pages: BTreeMap<&str, String> = Sample(None).pages().into_iter().collect();
    let boxes = |page: &str| {
        let read = read(&pages[page]);
        let of = |element: &&Element| element.attributes.get("name").is_some_and(|name| name == "finding");
        read.elements.iter().filter(of).map(|element| element.attributes["value"].clone()).collect::<Vec<_>>()
    };
    // The worst first: deleted, modified, unknown. What was not checked and what is resolved has no box.
    assert_eq!(boxes("drift"), ["f1-4", "f6-4", "f0-4", "f5-4", "f2-4", "f7-4"]);
    assert_eq!(boxes("resource"), ["f1-4", "f2-4"]);
    assert_eq!(boxes("accept again"), ["f1-4"]);
    assert!(boxes("drift, barred").is_empty() && boxes("compare").is_empty());
    assert!(pages["drift, barred"].contains("Nothing can be accepted here: 2 findings accepted"));
    assert!(!pages["drift, barred"].contains("action=\"/accept\""));
}

#[test]
fn the_overview_reads_like_this() {
    let pages: BTreeMap<&str, String> = Sample(None).pages().into_iter().collect();
    let html = &pages["overview"];
    let main = html.split("<main").nth(1).unwrap().split("</main>").next().unwrap();
    // A line for each block, as a screen reader goes through them.
    let mut text = main.to_owned();
    for block in ["p", "li", "h1", "h2", "dt", "dd", "tr", "summary", "caption", "div", "section"] {
        text = text
            .replace(&format!("<{block}>"), &format!("\n<{block}>"))
            .replace(&format!("</{block}>"), &format!("</{block}>\n"));
    }
    let text = text.replace("</th>", "</th> ").replace("</td>", "</td> ").replace("</span>", "</span> ");
    let lines = read(&format!("<main{text}</main>")).texts.concat();
    let lines: Vec<String> = lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
