//! `schema`: what AWS's own schemas say of a type, and what follows from that.

use std::io::{self, Write};

use driftline_core::rule::Glob;
use driftline_sources::schema::{self, Correction, Facts, Mark, Scalar};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::args::SchemaArgs;
use crate::error::{CommandError, CommandResult};
use crate::output::{BOLD, DIM, Page, Show, columns, count, markdown_table, short};
use crate::settings::Settings;

/// How many names an error suggests.
const MOST: usize = 3;

/// How much of an expression a table shows.
const WIDTH: usize = 100;

pub(crate) fn run(settings: &Settings, args: &SchemaArgs) -> CommandResult<()> {
    match (&args.kind, args.list) {
        (glob, true) => {
            let glob = Glob::new(glob.as_deref().unwrap_or("*").to_lowercase());
            let names: Vec<&str> = schema::names().filter(|name| glob.matches(&name.to_lowercase())).collect();
            if names.is_empty() {
                return Err(CommandError::new(format!("no type is called `{}`", glob.as_str()))
                    .hint("`*` stands for any run of characters, as in `AWS::S3::*`"));
            }
            settings.printer.print(&List { names })
        }
        (Some(kind), false) => {
            let facts = schema::facts(kind).ok_or_else(|| unknown(kind))?;
            settings.printer.print(&Sheet { facts, rows: rows(facts) })
        }
        (None, false) => Err(CommandError::new("which type?")
            .hint("`driftline schema AWS::S3::Bucket`, or `driftline schema --list` for all")),
    }
}

fn unknown(kind: &str) -> CommandError {
    let error = CommandError::new(format!("there is no schema for `{kind}`"));
    let near = near(kind);
    if near.is_empty() {
        return error.hint("`driftline schema --list` lists the types that have one");
    }
    near.iter().fold(error, |error, name| error.hint(format!("did you mean `{name}`?")))
}

/// The types that someone may have meant: those that end so, then those that are spelled nearly so. Signs between
/// the words are not looked at, so `aws_s3_bucket` and `S3.Bucket` are near, too.
fn near(kind: &str) -> Vec<&'static str> {
    let letters = |text: &str| {
        text.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>()
    };
    let meant = letters(kind);
    // What is far longer than any name is no misspelling of one.
    if meant.is_empty() || meant.len() > 200 {
        return Vec::new();
    }
    let rank = |name: &'static str| {
        let known = letters(name);
        if known.ends_with(&meant) && meant.len() > 2 {
            return Some((0, known.len(), name));
        }
        let distance = strsim::damerau_levenshtein(&known, &meant);
        (distance <= 2 + meant.len() / 8).then_some((distance, known.len(), name))
    };
    let mut ranked: Vec<(usize, usize, &str)> = schema::names().filter_map(rank).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(MOST).map(|(_, _, name)| name).collect()
}

struct List {
    names: Vec<&'static str>,
}

impl Show for List {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        self.names.iter().try_for_each(|name| writeln!(page, "{name}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let list = json!({"schema": "driftline.schemas/v1", "from": schema::origin(), "types": self.names});
        Ok(serde_json::to_writer_pretty(out, &list)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        self.names.iter().try_for_each(|name| writeln!(out, "{}", json!({"type": name})))
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.names.iter().try_for_each(|name| writeln!(out, "- `{name}`"))
    }
}

/// One fact of one place, and what follows from it.
#[derive(Serialize)]
struct Row {
    path: String,
    fact: &'static str,
    rule: String,
}

struct Sheet {
    facts: &'static Facts,
    /// By place, and in the order of [`Mark::ALL`].
    rows: Vec<Row>,
}

fn rows(facts: &Facts) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut marks: Vec<(String, Mark)> = facts.marks().map(|(mark, path)| (path.to_string(), mark)).collect();
    marks.sort();
    rows.extend(marks.into_iter().map(|(path, mark)| Row { path, fact: mark.name(), rule: consequence(mark).into() }));
    for (path, value) in &facts.defaults {
        rows.push(Row { path: path.to_string(), fact: "default", rule: format!("absent means {}", value.to_json()) });
    }
    for transform in &facts.transforms {
        for expression in &transform.alternatives {
            let rule = format!("what is declared may be read as {expression}");
            rows.push(Row { path: transform.path.to_string(), fact: "transform", rule });
        }
    }
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    rows
}

fn consequence(mark: Mark) -> &'static str {
    match mark {
        Mark::ReadOnly => "AWS sets it: a declaration has nothing to compare it with",
        Mark::WriteOnly => "never read back: cannot be checked",
        Mark::Required => "a thing without it cannot be: if it is missing from what is read, it is not read back",
        Mark::CreateOnly => "compared; to change it takes a new resource",
        Mark::ConditionalCreateOnly => "compared; to change it may take a new resource",
        Mark::Deprecated => "may be missing from what is read",
        Mark::Unordered => "its order does not count",
        Mark::Unique => "nothing is in it twice",
        Mark::AttributeList => "settings that are only live are AWS's defaults",
        Mark::Tags => "compared by key; tags that begin with `aws:` are AWS's",
        Mark::Scalar(Scalar::Integer | Scalar::Number) => "a text that spells the number is that number",
        Mark::Scalar(Scalar::Boolean) => "`\"true\"` is true, `\"false\"` is false",
        Mark::Document => "JSON told as text is compared as what it says",
        Mark::Policy => "compared as an IAM policy",
    }
}

impl Sheet {
    fn heading(&self) -> Vec<Vec<String>> {
        let list = |pointers: &[driftline_core::Pointer]| {
            pointers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
        };
        let mut rows = vec![vec!["named by".to_owned(), list(&self.facts.primary)]];
        rows.extend(self.facts.additional.iter().map(|also| vec!["also by".to_owned(), list(also)]));
        if !self.facts.readable {
            rows.push(vec!["read".to_owned(), "AWS cannot read it, so it cannot be checked".to_owned()]);
        }
        rows.push(vec!["from".to_owned(), schema::origin().to_owned()]);
        rows
    }

    fn cells(&self) -> Vec<Vec<String>> {
        let mut cells = vec![["property", "fact", "what follows"].map(str::to_owned).to_vec()];
        cells.extend(self.rows.iter().map(|row| vec![row.path.clone(), row.fact.to_owned(), short(&row.rule, WIDTH)]));
        cells
    }

    fn corrections(&self) -> impl Iterator<Item = String> {
        let line = |it: &Correction| format!("{} {}: {}", it.path, it.what, it.reason);
        self.facts.corrections.iter().map(line)
    }
}

impl Show for Sheet {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}", page.paint(BOLD, &self.facts.name))?;
        columns(&self.heading(), 2).iter().try_for_each(|line| writeln!(page, "{line}"))?;
        let mut cells = self.cells();
        // A place is named once, however much is known of it.
        for at in (2..cells.len()).rev() {
            if cells[at][0] == cells[at - 1][0] {
                cells[at][0].clear();
            }
        }
        writeln!(page)?;
        for (at, line) in columns(&cells, 0).iter().enumerate() {
            let line = if at == 0 { page.paint(DIM, line) } else { line.clone() };
            writeln!(page, "{line}")?;
        }
        let corrections: Vec<String> = self.corrections().collect();
        if !corrections.is_empty() {
            writeln!(page, "\nnot as the schema says:")?;
            corrections.iter().try_for_each(|line| writeln!(page, "  {line}"))?;
        }
        let (facts, corrections) = (count(self.rows.len(), "fact"), count(corrections.len(), "correction"));
        writeln!(page, "\nresult: {facts}, {corrections}")
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let facts = self.facts;
        let pairs = |list: &[(driftline_core::Pattern, driftline_core::Value)]| -> Vec<Json> {
            list.iter().map(|(path, value)| json!({"path": path, "value": value})).collect()
        };
        let scalars: Vec<Json> = facts.scalars.iter().map(|(path, it)| json!({"path": path, "type": it})).collect();
        let sheet = json!({
            "schema": "driftline.schema/v1", "type": facts.name, "from": schema::origin(),
            "readable": facts.readable, "primaryIdentifier": facts.primary, "additionalIdentifiers": facts.additional,
            "readOnly": facts.read_only, "writeOnly": facts.write_only, "createOnly": facts.create_only,
            "conditionalCreateOnly": facts.conditional_create_only, "deprecated": facts.deprecated,
            "unordered": facts.unordered, "unique": facts.unique, "attributeLists": facts.attribute_lists,
            "tags": facts.tags, "scalars": scalars, "documents": facts.documents, "policies": facts.policies,
            "defaults": pairs(&facts.defaults), "transforms": facts.transforms, "corrections": facts.corrections,
            "rules": self.rows,
        });
        Ok(serde_json::to_writer_pretty(out, &sheet)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            serde_json::to_writer(&mut *out, row)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "## `{}`\n", self.facts.name)?;
        let heading: Vec<Vec<String>> =
            [vec![String::new(), String::new()]].into_iter().chain(self.heading()).collect();
        markdown_table(&heading, out)?;
        writeln!(out)?;
        markdown_table(&self.cells(), out)?;
        let corrections: Vec<Vec<String>> = self.corrections().map(|line| vec![line]).collect();
        if !corrections.is_empty() {
            writeln!(out)?;
            let rows: Vec<Vec<String>> =
                [vec!["not as the schema says".to_owned()]].into_iter().chain(corrections).collect();
            markdown_table(&rows, out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_finds_the_right_one() {
        for (kind, name) in [
            ("AWS::S3::Buket", "AWS::S3::Bucket"),
            ("aws_s3_bucket", "AWS::S3::Bucket"),
            ("S3::Bucket", "AWS::S3::Bucket"),
            ("AWS::DynamoDb::Tabel", "AWS::DynamoDB::Table"),
            ("lambda.function", "AWS::Lambda::Function"),
            ("AWS::EC2::SecurityGroups", "AWS::EC2::SecurityGroup"),
        ] {
            assert_eq!(near(kind).first(), Some(&name), "{kind}");
        }
        for kind in ["", "::", "Custom::Something::Else", &"x".repeat(10_000)] {
            assert!(near(kind).is_empty(), "{kind}");
        }
    }
}
