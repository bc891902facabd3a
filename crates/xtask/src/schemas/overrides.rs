//! Our own corrections. One that changes nothing is an error: then the package was mended, and the row can go.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use driftline_sources::schema::{Correction, Mark, Transform, alternatives};
use serde::Deserialize;
use serde_json::Value as Json;

use super::Result;
use super::survey::{Steps, Survey, to_pattern};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pointer: Vec<PointerRow>,
    fact: Vec<FactRow>,
    member: Vec<MemberRow>,
    expression: Vec<ExpressionRow>,
    transform: Vec<TransformRow>,
    texts: Texts,
}

/// A transform whose pointer leads nowhere; `replace` is for what its expression has wrong in the same way.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointerRow {
    r#type: String,
    from: String,
    to: String,
    replace: Option<(String, String)>,
    reason: String,
}

/// What holds, or does not hold, of some places of one type.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactRow {
    r#type: String,
    paths: Vec<String>,
    #[serde(default)]
    add: Vec<String>,
    #[serde(default)]
    remove: Vec<String>,
    reason: String,
}

/// What holds of every array of texts with such a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberRow {
    names: Vec<String>,
    add: Vec<String>,
    reason: String,
}

/// A part of an expression that is wrong wherever it stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpressionRow {
    from: String,
    to: String,
    rows: usize,
    reason: String,
}

/// A transform that the package does not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TransformRow {
    r#type: String,
    path: String,
    expression: String,
    source: String,
    reason: String,
}

/// Which places of which types are JSON documents and IAM policies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    documents: BTreeMap<String, Vec<String>>,
    policies: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
pub(super) struct Overrides {
    file: File,
    /// How often each row changed something.
    uses: RefCell<BTreeMap<String, usize>>,
}

impl Overrides {
    pub(super) fn parse(text: &str) -> Result<Self> {
        Ok(Self { file: toml::from_str(text)?, uses: RefCell::default() })
    }

    fn count(&self, row: impl Into<String>) {
        *self.uses.borrow_mut().entry(row.into()).or_default() += 1;
    }

    /// The schema with the pointers of its transforms as they are meant.
    pub(super) fn mend_pointers(&self, name: &str, schema: &Json) -> Result<Json> {
        let mut schema = schema.clone();
        for row in self.file.pointer.iter().filter(|row| row.r#type == name) {
            let transforms = schema.get_mut("propertyTransform").and_then(Json::as_object_mut);
            let moved = transforms.and_then(|transforms| {
                let said = transforms.remove(&row.from)?;
                let mended = match &row.replace {
                    Some((from, to)) => said.as_str()?.replace(from, to).into(),
                    None => said,
                };
                Some(transforms.insert(row.to.clone(), mended))
            });
            // Not there any more, or there in both forms: either way the row has had its time.
            if moved != Some(None) {
                return Err(format!("`{}` is not there to be mended; take the override out", row.from).into());
            }
            self.count(format!("pointer {name} {}", row.from));
        }
        Ok(schema)
    }

    pub(super) fn apply(&self, name: &str, survey: &mut Survey) -> Result<()> {
        for row in self.file.pointer.iter().filter(|row| row.r#type == name) {
            let path = row.to.trim_start_matches("/properties").parse()?;
            survey.corrections.push(Correction { path, what: "pointer".to_owned(), reason: row.reason.clone() });
        }
        for row in &self.file.member {
            self.apply_member(row, survey)?;
        }
        for row in self.file.fact.iter().filter(|row| row.r#type == name) {
            for path in &row.paths {
                for mark in &row.add {
                    set(survey, path, mark, true, Some(&row.reason))?;
                }
                for mark in &row.remove {
                    set(survey, path, mark, false, Some(&row.reason))?;
                }
                self.count(format!("fact {name} {path}"));
            }
        }
        for row in &self.file.expression {
            for transform in survey.transforms.iter_mut().filter(|it| it.expression.contains(&row.from)) {
                transform.expression = transform.expression.replace(&row.from, &row.to);
                transform.alternatives = alternatives(&transform.expression);
                let (path, reason) = (transform.path.clone(), row.reason.clone());
                survey.corrections.push(Correction { path, what: "transform".to_owned(), reason });
                self.count(format!("expression {}", row.from));
            }
        }
        for row in self.file.transform.iter().filter(|row| row.r#type == name) {
            let path = row.path.parse()?;
            if survey.transforms.iter().any(|known| known.path == path) {
                return Err(format!("{path} has a transform by now").into());
            }
            let (expression, source) = (row.expression.clone(), row.source.clone());
            survey.corrections.push(Correction {
                path: row.path.parse()?,
                what: "+transform".to_owned(),
                reason: row.reason.clone(),
            });
            survey.transforms.push(Transform { path, alternatives: alternatives(&expression), expression, source });
            self.count(format!("transform {name} {}", row.path));
        }
        // Not corrections: the schemas have no word for either.
        for (texts, mark) in [(&self.file.texts.documents, "document"), (&self.file.texts.policies, "policy")] {
            for path in texts.get(name).into_iter().flatten() {
                set(survey, path, mark, true, None)?;
                self.count(format!("{mark} {name} {path}"));
            }
        }
        for place in survey.places.values_mut().filter(|place| place.marks.contains(&Mark::Policy)) {
            place.marks.insert(Mark::Document);
        }
        Ok(())
    }

    fn apply_member(&self, row: &MemberRow, survey: &mut Survey) -> Result<()> {
        let is_meant = |steps: &Steps| {
            let element: Steps = steps.iter().cloned().chain(["*".to_owned()]).collect();
            steps.last().is_some_and(|name| row.names.contains(name))
                && survey.places.get(&element).is_some_and(|place| place.is_text)
        };
        let arrays = survey.places.iter().filter(|(steps, place)| place.is_array && is_meant(steps));
        let arrays: Vec<Steps> = arrays.map(|(steps, _)| steps.clone()).collect();
        for steps in arrays {
            for mark in &row.add {
                let mark = named(mark)?;
                if survey.places.get_mut(&steps).is_some_and(|place| place.marks.insert(mark)) {
                    let what = format!("+{}", mark.name());
                    survey.corrections.push(Correction { path: to_pattern(&steps)?, what, reason: row.reason.clone() });
                    self.count(format!("member {}", steps.last().map_or("", String::as_str)));
                }
            }
        }
        Ok(())
    }

    /// Fails if a row speaks of a type that is not there, or changed nothing.
    pub(super) fn were_all_used(&self) -> Result<()> {
        let mut expected: BTreeSet<String> = BTreeSet::new();
        let file = &self.file;
        expected.extend(file.pointer.iter().map(|row| format!("pointer {} {}", row.r#type, row.from)));
        for row in &file.fact {
            expected.extend(row.paths.iter().map(|path| format!("fact {} {path}", row.r#type)));
        }
        expected.extend(file.member.iter().flat_map(|row| &row.names).map(|name| format!("member {name}")));
        expected.extend(file.transform.iter().map(|row| format!("transform {} {}", row.r#type, row.path)));
        for (mark, texts) in [("document", &file.texts.documents), ("policy", &file.texts.policies)] {
            for (kind, paths) in texts {
                expected.extend(paths.iter().map(|path| format!("{mark} {kind} {path}")));
            }
        }
        let uses = self.uses.borrow();
        if let Some(unused) = expected.iter().find(|row| !uses.contains_key(*row)) {
            return Err(format!("the override `{unused}` changes nothing; take it out").into());
        }
        for row in &file.expression {
            let found = uses.get(&format!("expression {}", row.from)).copied().unwrap_or_default();
            if found != row.rows {
                return Err(format!("`{}` stands in {found} transforms and not in {}", row.from, row.rows).into());
            }
        }
        Ok(())
    }
}

fn named(mark: &str) -> Result<Mark> {
    Mark::from_name(mark).ok_or_else(|| format!("`{mark}` is not a fact").into())
}

fn set(survey: &mut Survey, path: &str, mark: &str, holds: bool, reason: Option<&str>) -> Result<()> {
    let steps: Steps = path.split('/').skip(1).map(ToOwned::to_owned).collect();
    let place = survey.places.get_mut(&steps).ok_or_else(|| format!("the schema has no `{path}`"))?;
    let (mark, changed) = match (named(mark)?, holds) {
        (mark, true) => (mark, place.marks.insert(mark)),
        (mark, false) => (mark, place.marks.remove(&mark)),
    };
    if !changed {
        let word = if holds { "already" } else { "not" };
        return Err(format!("`{path}` is {word} {}; take the override out", mark.name()).into());
    }
    if let Some(reason) = reason {
        let what = format!("{}{}", if holds { '+' } else { '-' }, mark.name());
        survey.corrections.push(Correction { path: to_pattern(&steps)?, what, reason: reason.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use driftline_sources::schema::write;
    use serde_json::json;

    use super::*;

    const EMPTY: &str = "pointer = []\nfact = []\nmember = []\nexpression = []\ntransform = []\n[texts]\ndocuments = {}\npolicies = {}\n";

    /// The record of a small type under these overrides, or why they are refused.
    fn applied(overrides: &str) -> Result<String> {
        let schema = json!({
            "primaryIdentifier": ["/properties/A"],
            "propertyTransform": {"/properties/A": "$lowercase(B)"},
            "properties": {
                "A": {"type": "string"},
                "L": {"type": "array", "insertionOrder": false, "items": {"type": "string"}},
                "SubnetIds": {"type": "array", "items": {"type": "string"}},
            },
        });
        let overrides = Overrides::parse(overrides)?;
        let schema = overrides.mend_pointers("T", &schema)?;
        let mut survey = Survey::of(&schema, "here")?;
        overrides.apply("T", &mut survey)?;
        overrides.were_all_used()?;
        Ok(write(&survey.into_facts("T")?))
    }

    #[test]
    fn a_correction_changes_a_fact_and_leaves_its_reason() {
        let row = |key: &str, row: &str| EMPTY.replace(&format!("{key} = []"), &format!("{key} = [{{{row}}}]"));
        let before = applied(EMPTY).unwrap();
        for (overrides, line) in [
            (
                row("fact", r#"type = "T", paths = ["/L"], remove = ["unordered"], reason = "why""#),
                r#":corrected /L "-unordered" "why""#,
            ),
            (row("fact", r#"type = "T", paths = ["/A"], add = ["document"], reason = "why""#), "A j"),
            (row("member", r#"names = ["SubnetIds"], add = ["unordered"], reason = "why""#), "SubnetIds u"),
            (
                row("expression", r#"from = "B", to = "A", rows = 1, reason = "why""#),
                r#":transform /A "here" "$lowercase(A)""#,
            ),
            (
                row("pointer", r#"type = "T", from = "/properties/A", to = "/properties/L", reason = "why""#),
                r#":corrected /L "pointer" "why""#,
            ),
            (
                row("transform", r#"type = "T", path = "/L", expression = "x", source = "there", reason = "why""#),
                r#":transform /L "there" "x""#,
            ),
            (EMPTY.replace("policies = {}", r#"policies = {T = ["/A"]}"#), "A jp"),
        ] {
            let after = applied(&overrides).unwrap();
            assert!(after.lines().any(|it| it == line) && !before.lines().any(|it| it == line), "{line}\n{after}");
        }
    }

    #[test]
    fn a_correction_that_changes_nothing_is_refused() {
        let row = |key: &str, row: &str| EMPTY.replace(&format!("{key} = []"), &format!("{key} = [{{{row}}}]"));
        for overrides in [
            row("fact", r#"type = "T", paths = ["/L"], add = ["unordered"], reason = """#),
            row("fact", r#"type = "T", paths = ["/A"], remove = ["unordered"], reason = """#),
            row("fact", r#"type = "T", paths = ["/Z"], add = ["unordered"], reason = """#),
            row("fact", r#"type = "Gone", paths = ["/A"], add = ["unordered"], reason = """#),
            row("fact", r#"type = "T", paths = ["/A"], add = ["tidy"], reason = """#),
            row("member", r#"names = ["L"], add = ["unordered"], reason = """#),
            row("expression", r#"from = "B", to = "A", rows = 2, reason = """#),
            row("pointer", r#"type = "T", from = "/properties/Z", to = "/properties/L", reason = """#),
            row("transform", r#"type = "T", path = "/A", expression = "x", source = "", reason = """#),
            EMPTY.replace("documents = {}", r#"documents = {Gone = ["/A"]}"#),
            EMPTY.replace("fact", "fcat"),
        ] {
            assert!(applied(&overrides).is_err(), "{overrides}");
        }
    }
}
