//! What would be asked, without asking, and the IAM policies for it.

use std::collections::BTreeSet;
use std::io::{self, Write};

use driftline_aws::{Asked, Observer, Reach, Unit, policy};
use driftline_core::SourceName;
use serde::Serialize;

use crate::error::{CommandError, CommandResult};
use crate::live_args::LiveArgs;
use crate::output::{Page, Show};
use crate::settings::Settings;
use crate::swept::{AtOnce, Sweep};

/// What would be asked, without asking.
pub(crate) fn plan(settings: &Settings, observer: &str, source: &SourceName, args: &LiveArgs) -> CommandResult<()> {
    let observer = super::named(observer)?;
    let (asked, reach) = (super::asked(settings, observer, source, args)?, super::reach(args)?);
    let regional = observer.units(&asked).contains(&Unit::Regional);
    let (accounts, regions) = (told_accounts(&reach), told_regions(&reach, regional));
    let operations = observer.operations(&asked);
    let mut calls: Vec<String> = operations.iter().map(|one| format!("{} {}", one.service, one.name)).collect();
    calls.sort();
    calls.dedup();
    let actions = policy::actions([(observer, &asked)], &reach);
    settings.printer.print(&Plan {
        schema: "driftline.plan/v1",
        observer: observer.name(),
        source: source.to_string(),
        accounts,
        regions,
        excluded: args.exclude_regions.clone(),
        types: if asked.scan.is_some() { Vec::new() } else { types(observer, &asked) },
        calls,
        policy: policy::policy(&actions),
    })
}

fn told_accounts(reach: &Reach) -> String {
    let mut told: Vec<String> = Vec::new();
    if reach.organization {
        told.push("every active account of the organization".to_owned());
    }
    told.extend(reach.parents.iter().map(|parent| format!("every active account beneath {parent}")));
    told.extend(reach.accounts.iter().cloned());
    if told.is_empty() {
        told.push("the one that the credentials are of".to_owned());
    }
    let excluded: Vec<&str> = reach.exclude_parents.iter().chain(&reach.exclude_accounts).map(String::as_str).collect();
    match excluded.is_empty() {
        true => told.join(", "),
        false => format!("{}, but not {}", told.join(", "), excluded.join(", ")),
    }
}

fn told_regions(reach: &Reach, regional: bool) -> String {
    match (reach.all_regions, regional) {
        (_, false) => "none: it is the same in all of them".to_owned(),
        (true, true) => "every region that is enabled".to_owned(),
        (false, true) if reach.regions.is_empty() => "the configured one".to_owned(),
        (false, true) => reach.regions.join(", "),
    }
}

fn types(observer: Observer, asked: &Asked) -> Vec<String> {
    match asked.types.is_empty() {
        true => observer.types().into_iter().map(str::to_owned).collect(),
        false => asked.types.clone(),
    }
}

#[derive(Serialize)]
struct Plan {
    schema: &'static str,
    observer: &'static str,
    source: String,
    accounts: String,
    regions: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excluded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    calls: Vec<String>,
    policy: serde_json::Value,
}

impl Plan {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("source", self.source.clone()),
            ("accounts", self.accounts.clone()),
            ("regions", self.regions.clone()),
        ];
        if !self.excluded.is_empty() {
            lines.push(("but not", self.excluded.join(", ")));
        }
        if !self.types.is_empty() {
            lines.push(("types", self.types.join(", ")));
        }
        lines.push(("calls", self.calls.join(", ")));
        lines
    }

    fn policy(&self) -> String {
        serde_json::to_string_pretty(&self.policy).unwrap_or_default()
    }
}

impl Show for Plan {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{} would ask (nothing was asked):", self.observer)?;
        for (name, text) in self.lines() {
            writeln!(page, "  {name:<9} {text}")?;
        }
        writeln!(page, "\nThe IAM policy for it:\n{}", self.policy())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer_pretty(out, self)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| {} | |\n|---|---|", self.observer)?;
        for (name, text) in self.lines() {
            writeln!(out, "| {name} | {} |", crate::output::markdown_cell(&text))?;
        }
        writeln!(out, "\n```json\n{}\n```", self.policy())
    }
}

/// The same for every source that asks AWS. Two policies, for the two that take part: the role in each account, and
/// whoever takes it on.
pub(crate) fn plan_all(settings: &Settings, sweep: &Sweep<'_>) -> CommandResult<()> {
    let mut sources = Vec::new();
    let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
    for asking in &sweep.sources {
        let super::Job { observer, source, asked, reach, .. } = super::job(settings, asking)
            .map_err(|error| error.about(format!("the source `{}` cannot be observed", asking.source)))?;
        inside.extend(policy::inside([(observer, &asked)], &reach));
        outside.extend(policy::outside(&reach));
        sources.push(SourcePlan {
            source: source.to_string(),
            observer: observer.name(),
            accounts: told_accounts(&reach),
            regions: told_regions(&reach, observer.units(&asked).contains(&Unit::Regional)),
            excluded_regions: reach.exclude_regions.clone(),
            role: reach.names_accounts().then(|| {
                let named = reach.role_name.as_deref();
                driftline_aws::accounts::role_arn("aws", "{account}", named)
            }),
        });
    }
    if sources.is_empty() {
        return Err(CommandError::new("no source of the configuration asks AWS itself")
            .hint("give a [[source]] `model` and `aws`, e.g. model = \"inventory\" and aws = {}"));
    }
    if sweep.sources.iter().any(|asking| asking.observer == Observer::CloudControl.name()) {
        settings.printer.note(super::OF_CLOUD_CONTROL);
    }
    settings.printer.print(&WholePlan {
        schema: "driftline.plan/v1",
        sources,
        at_once: sweep.at_once,
        shard: sweep.shard.map(|shard| shard.to_string()),
        policy: policy::policy(&inside),
        caller_policy: policy::policy(&outside),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourcePlan {
    source: String,
    observer: &'static str,
    accounts: String,
    regions: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excluded_regions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WholePlan {
    schema: &'static str,
    sources: Vec<SourcePlan>,
    at_once: AtOnce,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    /// Of the role in each account.
    policy: serde_json::Value,
    /// Of whoever takes it on.
    caller_policy: serde_json::Value,
}

impl WholePlan {
    fn lines(&self) -> Vec<String> {
        let line = |plan: &SourcePlan| {
            let excluded = match plan.excluded_regions.is_empty() {
                true => String::new(),
                false => format!(" (but not {})", plan.excluded_regions.join(", ")),
            };
            let role = plan.role.as_ref().map_or_else(String::new, |role| format!("; role {role}"));
            format!(
                "{} ({}): accounts: {}; regions: {}{excluded}{role}",
                plan.source, plan.observer, plan.accounts, plan.regions
            )
        };
        let mut lines: Vec<String> = self.sources.iter().map(line).collect();
        let AtOnce { overall, per_account, per_region, per_service } = self.at_once;
        let bounds = [("an account", per_account), ("a region of it", per_region), ("a service there", per_service)];
        let told: Vec<String> =
            bounds.iter().filter_map(|(of, bound)| Some(format!("{} of {of}", (*bound)?))).collect();
        lines.push(format!("requests at once: {overall} in all, {}", told.join(", ")));
        lines.extend(self.shard.iter().map(|shard| format!("only the accounts of share {shard}")));
        lines
    }

    fn policies(&self) -> [(&'static str, String); 2] {
        let text = |policy| serde_json::to_string_pretty(policy).unwrap_or_default();
        [
            ("The IAM policy of the role in each account", text(&self.policy)),
            ("The IAM policy of whoever takes it on", text(&self.caller_policy)),
        ]
    }
}

impl Show for WholePlan {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "would ask (nothing was asked):")?;
        for line in self.lines() {
            writeln!(page, "  {}", crate::output::visible(&line))?;
        }
        for (name, text) in self.policies() {
            writeln!(page, "\n{name}:\n{text}")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer_pretty(out, self)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in self.lines() {
            writeln!(out, "- {}", crate::output::markdown_cell(&line))?;
        }
        for (name, text) in self.policies() {
            writeln!(out, "\n{name}:\n\n```json\n{text}\n```")?;
        }
        Ok(())
    }
}
