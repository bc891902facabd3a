//! The fleet as a table, JSON and Markdown.

use std::collections::BTreeMap;
use std::io::{self, Write};

use driftline_core::Severity;
use driftline_store::detect::Tally;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{Fleet, Need, Row, Whose};
use crate::fleet_args::By;
use crate::observe::Extents;
use crate::output::{
    BOLD, DIM, GREEN, Page, RED, Show, YELLOW, columns, count, markdown_cell, markdown_table, visible,
};
use crate::time::ago;

/// How many reasons for gaps a table tells.
const REASONS: usize = 20;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRow<'a> {
    account: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    /// Whether somebody says that it should be there.
    expected: bool,
    status: &'static str,
    needs: Vec<&'static str>,
    /// All of it was seen since then.
    last_look: Option<Timestamp>,
    newest_look: Option<Timestamp>,
    streams: usize,
    stale_streams: usize,
    extents: Extents,
    reasons: Vec<Json>,
    resources: u64,
    in_sync: u64,
    drifted: u64,
    unknown: u64,
    not_checked: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    highest_severity: Option<Severity>,
}

impl Fleet {
    fn pairs(&self) -> impl Iterator<Item = (&Whose, &Row)> {
        self.whose.iter().zip(&self.rows)
    }

    fn json_row<'a>(&'a self, (account, part): &'a Whose, row: &'a Row) -> JsonRow<'a> {
        let needs = row.needs();
        // `urgent` is how bad something is; what it is stands behind it.
        let needs: Vec<&str> = needs.into_iter().filter(|need| *need != Need::Urgent).map(Need::name).collect();
        let part = part.as_deref();
        JsonRow {
            account,
            name: self.names.get(account).map(String::as_str),
            region: part.filter(|_| self.by == By::Region),
            source: part.filter(|_| self.by == By::Source),
            expected: row.expected,
            status: needs.first().copied().unwrap_or_default(),
            needs,
            last_look: row.last_look(),
            newest_look: row.newest,
            streams: row.streams,
            stale_streams: row.stale,
            extents: Extents { complete: row.complete, partial: row.partial },
            reasons: row
                .reasons
                .iter()
                .map(|(reason, extents)| json!({"reason": reason, "extents": extents}))
                .collect(),
            resources: row.resources(),
            in_sync: row.tally.in_sync,
            drifted: row.tally.drifted,
            unknown: row.tally.unknown,
            not_checked: row.tally.not_checked,
            highest_severity: row.worst,
        }
    }

    fn with(&self, need: Need) -> usize {
        self.rows.iter().filter(|row| row.has(need)).count()
    }

    fn tally(&self) -> Tally {
        self.rows.iter().fold(Tally::default(), |sum, row| Tally {
            in_sync: sum.in_sync + row.tally.in_sync,
            drifted: sum.drifted + row.tally.drifted,
            unknown: sum.unknown + row.tally.unknown,
            not_checked: sum.not_checked + row.tally.not_checked,
        })
    }

    /// Rows are accounts only where nothing divides them.
    fn noun(&self) -> &'static str {
        if self.by == By::Account { "account" } else { "row" }
    }

    fn summary(&self) -> Json {
        let Tally { in_sync, drifted, unknown, not_checked } = self.tally();
        let rows: BTreeMap<&str, usize> =
            [Need::Missing, Need::Stale, Need::Partial, Need::Drifted, Need::NotChecked, Need::Unknown, Need::InSync]
                .into_iter()
                .map(|need| (need.name(), self.with(need)))
                .collect();
        json!({
            "rows": self.rows.len(), "by": rows,
            "resources": {"total": self.tally().total(), "inSync": in_sync, "drifted": drifted, "unknown": unknown, "notChecked": not_checked},
        })
    }

    /// What is the matter with how many, and the result of all.
    fn result(&self) -> String {
        let told = [
            (Need::Missing, "never seen"),
            (Need::Stale, "stale"),
            (Need::Partial, "seen in part"),
            (Need::Drifted, "drifted"),
            (Need::Unknown, "with something unknown"),
            (Need::NotChecked, "not checked"),
            (Need::InSync, "in sync"),
        ];
        let told: Vec<String> = told
            .into_iter()
            .map(|(need, words)| (self.with(need), words))
            .filter(|(number, _)| *number > 0)
            .map(|(number, words)| format!("{number} {words}"))
            .collect();
        let Tally { in_sync, drifted, unknown, not_checked } = self.tally();
        format!(
            "{}: {}; {drifted} drifted, {unknown} unknown, {not_checked} not checked, {in_sync} in sync (of {})",
            count(self.rows.len(), self.noun()),
            if told.is_empty() { "nobody was looked at".to_owned() } else { told.join(", ") },
            count(self.tally().total(), "resource"),
        )
    }

    fn limited(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }

    fn table_rows(&self) -> Vec<Vec<String>> {
        let part = match self.by {
            By::Account => None,
            By::Region => Some("region"),
            By::Source => Some("source"),
        };
        let named = !self.names.is_empty();
        let mut header = vec!["account"];
        header.extend(named.then_some("name"));
        header.extend(part);
        header.extend(["status", "last look", "extents", "resources", "drifted", "unknown", "not checked", "highest"]);
        let mut rows = vec![header.into_iter().map(str::to_owned).collect::<Vec<String>>()];
        for ((account, part), row) in self.pairs().take(self.limited()) {
            let mut cells = vec![account.clone()];
            if named {
                cells.push(self.names.get(account).cloned().unwrap_or_default());
            }
            if self.by != By::Account {
                cells.push(part.clone().unwrap_or_default());
            }
            let needs = self.json_row(&(account.clone(), part.clone()), row).needs.join(", ").replace('_', " ");
            cells.push(needs);
            cells.push(row.last_look().map_or_else(|| "never".to_owned(), |look| ago(look, self.now)));
            if row.has(Need::Missing) {
                cells.extend(["-"; 6].map(str::to_owned));
            } else {
                cells.push(match row.partial {
                    0 => row.complete.to_string(),
                    partial => format!("{} + {partial} partial", row.complete),
                });
                cells.extend(
                    [row.resources(), row.tally.drifted, row.tally.unknown, row.tally.not_checked]
                        .map(|n| n.to_string()),
                );
                cells.push(row.worst.map_or_else(|| "-".to_owned(), |worst| worst.to_string()));
            }
            rows.push(cells);
        }
        rows
    }

    /// Each reason why something was not seen whole, with how many rows it is in.
    fn gaps(&self) -> Vec<(String, Vec<&str>)> {
        let mut gaps: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((account, _), row) in self.pairs() {
            for reason in row.reasons.keys() {
                let accounts = gaps.entry(reason).or_default();
                if accounts.last() != Some(&account.as_str()) {
                    accounts.push(account);
                }
            }
        }
        let mut gaps: Vec<(String, Vec<&str>)> = gaps.into_iter().map(|(reason, of)| (reason.to_owned(), of)).collect();
        gaps.sort_by(|(a, one), (b, other)| other.len().cmp(&one.len()).then_with(|| a.cmp(b)));
        gaps
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let gaps = self.gaps();
        for (reason, accounts) in gaps.iter().take(REASONS) {
            let some = accounts.iter().take(3).copied().collect::<Vec<_>>().join(", ");
            let more = if accounts.len() > 3 { format!(" and {} more", accounts.len() - 3) } else { String::new() };
            remarks.push(format!("{reason}: {some}{more}"));
        }
        if gaps.len() > REASONS {
            remarks.push(format!("and {} other reasons; -o json has them", gaps.len() - REASONS));
        }
        remarks
    }

    fn heading(&self) -> String {
        match &self.baseline {
            Some((name, set_at)) => format!("against baseline `{name}`, set {}", ago(*set_at, self.now)),
            None => "against no baseline".to_owned(),
        }
    }

    fn expectation(&self) -> String {
        match self.expected_from.is_empty() {
            true => "nobody says which accounts there should be, so none can be missing; [fleet] accounts or --expect FILE does".to_owned(),
            false => {
                let listed = self.listed_at.map_or_else(String::new, |at| format!(", listed {}", ago(at, self.now)));
                format!("expected as said by {}{listed}", self.expected_from.join(", "))
            }
        }
    }
}

impl Show for Fleet {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "Fleet {}", self.heading())?;
        writeln!(page)?;
        let lines = columns(&self.table_rows(), 0);
        let needs = std::iter::once(None).chain(self.rows.iter().map(|row| Some(row.needs()[0])));
        for (line, need) in lines.iter().zip(needs) {
            let line = match need {
                None => page.paint(DIM, line),
                Some(Need::Urgent | Need::Missing | Need::Drifted) => page.paint(RED, line),
                Some(Need::InSync) => page.paint(GREEN, line),
                Some(_) => page.paint(YELLOW, line),
            };
            writeln!(page, "{line}")?;
        }
        if self.rows.len() > self.limited() {
            writeln!(page, "and {} more; --limit 0 lists all", self.rows.len() - self.limited())?;
        }
        let remarks = self.remarks();
        if !remarks.is_empty() {
            writeln!(page, "\n{}", page.paint(BOLD, "why not whole"))?;
            for remark in remarks {
                writeln!(page, "  {}", visible(&remark))?;
            }
        }
        writeln!(page, "\n{}", page.paint(DIM, &self.expectation()))?;
        writeln!(page, "result: {}", self.result())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let baseline = self.baseline.as_ref().map(|(name, set_at)| json!({"name": name.to_string(), "setAt": set_at}));
        let rows: Vec<JsonRow<'_>> = self.pairs().map(|(whose, row)| self.json_row(whose, row)).collect();
        let answer = json!({
            "schema": "driftline.fleet/v1",
            "computedAt": self.now,
            "baseline": baseline,
            "by": match self.by { By::Account => "account", By::Region => "region", By::Source => "source" },
            "staleAfterSeconds": self.stale_after.as_secs(),
            "expectedFrom": self.expected_from,
            "expectedListedAt": self.listed_at,
            "summary": self.summary(),
            "accounts": rows,
        });
        Ok(serde_json::to_writer_pretty(out, &answer)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for (whose, row) in self.pairs() {
            serde_json::to_writer(&mut *out, &self.json_row(whose, row))?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### Fleet {}\n", markdown_cell(&self.heading()))?;
        markdown_table(&self.table_rows(), out)?;
        if self.rows.len() > self.limited() {
            writeln!(out, "\nand {} more", self.rows.len() - self.limited())?;
        }
        let remarks = self.remarks();
        if !remarks.is_empty() {
            writeln!(out, "\nWhy not whole:\n")?;
            for remark in remarks {
                writeln!(out, "- {}", markdown_cell(&remark))?;
            }
        }
        writeln!(out, "\n{}. {}.", markdown_cell(&self.result()), markdown_cell(&self.expectation()))
    }
}
