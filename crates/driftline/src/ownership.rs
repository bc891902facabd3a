//! `ownership`: for everything that was observed, who claims it, and what nobody does.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use driftline_core::{ResourceKey, Value};
use driftline_sources::aws::local_id;
use driftline_sources::{dns, identity};
use serde::Serialize;

use crate::args::OwnershipArgs;
use crate::drift::parse_sources;
use crate::error::CommandResult;
use crate::output::{
    BOLD, CYAN, DIM, GREEN, Page, Show, YELLOW, columns, count, markdown_cell, markdown_table, visible,
};
use crate::settings::Settings;
use crate::survey::{self, CLOUDFORMATION, Surveyed, TERRAFORM, is_a_thing, survey};
use crate::time::parse_moment;

/// Who says that a thing is theirs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Claim {
    pub by: &'static str,
    /// The source that says so.
    pub source: String,
    /// The address, the stack or the object.
    #[serde(rename = "as")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
}

/// One thing, whoever saw it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Thing {
    canonical_id: String,
    resource_type: String,
    place: String,
    status: Standing,
    seen_by: Vec<String>,
    claimed_by: Vec<Claim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    child_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Unclaimed,
    Claimed,
    /// Not claimed itself, but part of something that is.
    Child,
    /// Claimed, and absent where everything was listed.
    Missing,
    /// Claimed, and nobody looked where it would be.
    NotObserved,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tally {
    observed: usize,
    claimed: usize,
    children: usize,
    unclaimed: usize,
    missing: usize,
    not_observed: usize,
}

impl Tally {
    fn add(&mut self, standing: Standing) {
        match standing {
            Standing::Unclaimed => self.unclaimed += 1,
            Standing::Claimed => self.claimed += 1,
            Standing::Child => self.children += 1,
            Standing::Missing => self.missing += 1,
            Standing::NotObserved => self.not_observed += 1,
        }
        self.observed = self.unclaimed + self.claimed + self.children;
    }

    /// How much of what was observed is claimed, itself or with its parent.
    #[expect(clippy::cast_precision_loss, reason = "a share of resources that fit in memory")]
    fn coverage(&self) -> f64 {
        if self.observed == 0 { 0.0 } else { (self.claimed + self.children) as f64 / self.observed as f64 }
    }
}

/// A child's type, the pointer to what names its parent, the parent's type, and a member that must have a value.
type Parentage = (&'static str, &'static str, &'static str, Option<(&'static str, Condition)>);

enum Condition {
    Text(&'static str),
    True,
}

/// What comes and goes with something else. A default security group and a main route table are made with their VPC.
const CHILDREN: &[Parentage] = &[
    (dns::RECORD, "zoneId", dns::ZONE, None),
    ("AWS::RDS::DBInstance", "clusterIdentifier", "AWS::RDS::DBCluster", None),
    ("AWS::EC2::SecurityGroup", "vpcId", "AWS::EC2::VPC", Some(("groupName", Condition::Text("default")))),
    ("AWS::EC2::RouteTable", "vpcId", "AWS::EC2::VPC", Some(("isMain", Condition::True))),
    ("AWS::EC2::NetworkAcl", "vpcId", "AWS::EC2::VPC", Some(("isDefault", Condition::True))),
    ("AWS::EC2::Volume", "attachments", "AWS::EC2::Instance", None),
];

/// A log group is made by the function that writes to it.
const FUNCTION_LOGS: &str = "/aws/lambda/";

pub(crate) fn run(settings: &Settings, args: &OwnershipArgs) -> CommandResult<()> {
    let store = settings.open_store()?;
    let named = parse_sources(&args.source)?;
    let at = args.at.as_ref().map(|text| parse_moment(text, settings.now)).transpose()?;
    let surveyed = survey(&store, &named, at)?;
    let ownership = Ownership { things: things(&surveyed), limit: args.limit, all: args.all };
    if ownership.things.iter().all(|thing| thing.claimed_by.is_empty()) {
        settings
            .printer
            .note("note: no source claims anything; `driftline observe terraform STATE` tells what Terraform manages");
    }
    settings.printer.print(&ownership)
}

fn things(surveyed: &[Surveyed]) -> Vec<Thing> {
    let keys = surveyed.iter().enumerate().flat_map(|(at, one)| one.resources.keys().map(move |key| (key.clone(), at)));
    let groups = identity::things(keys.filter(|(key, _)| is_a_thing(&key.kind)));
    let value = |key: &ResourceKey, at: usize| &surveyed[at].resources[key];
    let mut things = Vec::new();
    // By type and name, so that children find their parents.
    let mut owned: BTreeSet<(String, String)> = BTreeSet::new();
    let mut parents: Vec<Option<(String, String)>> = Vec::new();
    for group in &groups {
        let mut claims = BTreeSet::new();
        let mut seen_by = BTreeSet::new();
        let mut parent = None;
        for (key, at) in group {
            let value = value(key, *at);
            let stream = surveyed[*at].stream.to_string();
            match claim_of(value, &stream) {
                Some(claim) => drop(claims.insert(claim)),
                None => drop(seen_by.insert(stream.clone())),
            }
            claims.extend(tag_claims(value, &stream));
            parent = parent.or_else(|| parent_of(key, value));
        }
        let (key, _) = &group[0];
        // What exists only in a tool's own books is not infrastructure that could be unclaimed.
        let place = key.place.as_str();
        if seen_by.is_empty() && ["terraform/", "cloudformation/"].iter().any(|tool| place.starts_with(tool)) {
            continue;
        }
        let mut reason = None;
        let standing = match (seen_by.is_empty(), claims.is_empty()) {
            (false, true) => Standing::Unclaimed,
            (false, false) => Standing::Claimed,
            (true, _) => {
                let observers = surveyed.iter().filter(|one| !one.claims);
                reason = survey::unseen(observers, &key.kind, key.place.as_str(), survey::sees_everything);
                if reason.is_none() { Standing::Missing } else { Standing::NotObserved }
            }
        };
        if !claims.is_empty() {
            owned.insert((key.kind.clone(), local_id(&key.kind, &key.id).to_owned()));
        }
        parents.push(parent);
        things.push(Thing {
            canonical_id: key.id.clone(),
            resource_type: key.kind.clone(),
            place: key.place.as_str().to_owned(),
            status: standing,
            seen_by: seen_by.into_iter().collect(),
            claimed_by: claims.into_iter().collect(),
            child_of: None,
            reason,
        });
    }
    for (thing, parent) in things.iter_mut().zip(parents) {
        if thing.status == Standing::Unclaimed
            && let Some((kind, id)) = parent.filter(|parent| owned.contains(parent))
        {
            thing.status = Standing::Child;
            thing.child_of = Some(format!("{kind} {id}"));
        }
    }
    things.sort_by(|a, b| {
        (a.status, &a.resource_type, &a.place, &a.canonical_id).cmp(&(
            b.status,
            &b.resource_type,
            &b.place,
            &b.canonical_id,
        ))
    });
    things
}

/// What the tool that a source reads from says of a thing.
pub(crate) fn claim_of(value: &Value, stream: &str) -> Option<Claim> {
    let member = |claim: &Value, name: &str| claim.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    if let Some(claim) = value.get(CLOUDFORMATION) {
        let name = format!("{}/{}", member(claim, "stack")?, member(claim, "logicalId")?);
        return Some(Claim { by: "cloudformation", source: stream.to_owned(), name, module: None });
    }
    let claim = value.get(TERRAFORM)?;
    let text = |name: &str| member(claim, name);
    Some(Claim { by: "terraform", source: stream.to_owned(), name: text("address")?, module: text("module") })
}

/// What tags that only the owner writes say.
pub(crate) fn tag_claims(value: &Value, stream: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    let tags = ["tags_all", "tags", "Tags"].iter().find_map(|name| value.get(name)).and_then(Value::as_object);
    for (name, tag) in tags.into_iter().flatten() {
        let tag = tag.as_str().unwrap_or_default();
        let claim = |by, name: String| Claim { by, source: stream.to_owned(), name, module: None };
        let cluster = name.strip_prefix("kubernetes.io/cluster/").filter(|_| tag == "owned");
        if name == "aws:cloudformation:stack-name" {
            let id = tags.and_then(|tags| tags.get("aws:cloudformation:logical-id")).and_then(Value::as_str);
            claims.push(claim("cloudformation", id.map_or_else(|| tag.to_owned(), |id| format!("{tag}/{id}"))));
        } else if let Some(cluster) = cluster {
            claims.push(claim("kubernetes", cluster.to_owned()));
        } else if name == "elbv2.k8s.aws/cluster" {
            claims.push(claim("kubernetes", tag.to_owned()));
        }
    }
    claims
}

fn parent_of(key: &ResourceKey, value: &Value) -> Option<(String, String)> {
    if let Some(function) = local_id(&key.kind, &key.id).strip_prefix(FUNCTION_LOGS)
        && key.kind == "AWS::Logs::LogGroup"
    {
        return Some(("AWS::Lambda::Function".into(), function.trim_end_matches(":*").to_owned()));
    }
    let (_, pointer, parent, _) = CHILDREN.iter().find(|(kind, _, _, condition)| {
        *kind == key.kind
            && match condition {
                None => true,
                Some((member, Condition::Text(text))) => value.get(member).and_then(Value::as_str) == Some(text),
                Some((member, Condition::True)) => value.get(member) == Some(&Value::Bool(true)),
            }
    })?;
    let named = match value.get(pointer)? {
        Value::String(id) if !id.is_empty() => id.clone(),
        Value::Array(items) => {
            let first = items.first()?;
            first.get("instanceId").and_then(Value::as_str)?.to_owned()
        }
        _ => return None,
    };
    Some(((*parent).to_owned(), named))
}

struct Ownership {
    things: Vec<Thing>,
    limit: usize,
    all: bool,
}

impl Ownership {
    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.things.iter().for_each(|thing| tally.add(thing.status));
        tally
    }

    fn by_type(&self) -> BTreeMap<&str, Tally> {
        let mut types: BTreeMap<&str, Tally> = BTreeMap::new();
        for thing in &self.things {
            types.entry(&thing.resource_type).or_default().add(thing.status);
        }
        types
    }

    fn limit(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let header = ["type", "observed", "claimed", "children", "unclaimed", "coverage"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let mut types: Vec<_> = self.by_type().into_iter().filter(|(_, tally)| tally.observed > 0).collect();
        types.sort_by(|(a, x), (b, y)| y.unclaimed.cmp(&x.unclaimed).then(a.cmp(b)));
        for (kind, tally) in types {
            let counts =
                [tally.observed, tally.claimed, tally.children, tally.unclaimed].map(|count| count.to_string());
            let mut row = vec![kind.to_owned()];
            row.extend(counts);
            row.push(percent(tally.coverage()));
            rows.push(row);
        }
        rows
    }

    fn result(&self) -> String {
        let tally = self.tally();
        let mut text = format!(
            "result: {} of {} claimed ({} themselves, {} with their parent), {} unclaimed",
            percent(tally.coverage()),
            count(tally.observed, "observed resource"),
            tally.claimed,
            tally.children,
            tally.unclaimed
        );
        if tally.missing + tally.not_observed > 0 {
            text += &format!("; claimed but {} missing, {} not observed", tally.missing, tally.not_observed);
        }
        text
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn claim_text(claim: &Claim) -> String {
    format!("{} {} ({})", claim.by, claim.name, claim.source)
}

impl Show for Ownership {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}\n", page.paint(BOLD, "Ownership"))?;
        for line in columns(&self.rows(), 0) {
            writeln!(page, "{line}")?;
        }
        writeln!(page)?;
        for (standing, title, about, style) in [
            (Standing::Unclaimed, "UNCLAIMED", "observed, and nobody says it is theirs", CYAN),
            (Standing::Missing, "MISSING", "claimed, and absent where everything was listed", YELLOW),
            (Standing::NotObserved, "NOT OBSERVED", "claimed, but nobody looked where it would be", YELLOW),
            (Standing::Claimed, "CLAIMED", "", GREEN),
            (Standing::Child, "CHILDREN", "part of something that is claimed", GREEN),
        ] {
            let of: Vec<&Thing> = self.things.iter().filter(|thing| thing.status == standing).collect();
            // What is fine is only listed on request, but two owners of one thing are not fine.
            let shown: Vec<&&Thing> = of
                .iter()
                .filter(|thing| {
                    self.all
                        || standing != Standing::Child && (standing != Standing::Claimed || thing.claimed_by.len() > 1)
                })
                .collect();
            if shown.is_empty() {
                continue;
            }
            let about = if standing == Standing::Claimed && !self.all { "by more than one" } else { about };
            writeln!(page, "{}  {}", page.paint(style, &format!("{title} {}", shown.len())), page.paint(DIM, about))?;
            for thing in shown.iter().take(self.limit()) {
                let seen = match thing.seen_by.is_empty() {
                    true => String::new(),
                    false => page.paint(DIM, &format!("({})", thing.seen_by.join(", "))),
                };
                writeln!(page, "  {}  {} {seen}", visible(&thing.canonical_id), visible(&thing.resource_type))?;
                for claim in &thing.claimed_by {
                    writeln!(page, "      {}", visible(&claim_text(claim)))?;
                }
                for note in thing.child_of.iter().map(|parent| format!("with {parent}")).chain(thing.reason.clone()) {
                    writeln!(page, "      {}", page.paint(DIM, &note))?;
                }
            }
            if shown.len() > self.limit() {
                writeln!(page, "  … and {} more (--limit 0 lists all)", shown.len() - self.limit())?;
            }
            writeln!(page)?;
        }
        writeln!(page, "{}", page.paint(BOLD, &self.result()))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct WithShare {
            #[serde(flatten)]
            tally: Tally,
            coverage: f64,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct All<'a> {
            schema: &'a str,
            summary: WithShare,
            by_resource_type: BTreeMap<&'a str, WithShare>,
            resources: &'a [Thing],
        }
        let with_share = |tally: Tally| WithShare { coverage: tally.coverage(), tally };
        let all = All {
            schema: "driftline.ownership/v1",
            summary: with_share(self.tally()),
            by_resource_type: self.by_type().into_iter().map(|(kind, tally)| (kind, with_share(tally))).collect(),
            resources: &self.things,
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for thing in &self.things {
            serde_json::to_writer(&mut *out, thing)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        markdown_table(&self.rows(), out)?;
        writeln!(out)?;
        let unclaimed: Vec<&Thing> = self.things.iter().filter(|thing| thing.status == Standing::Unclaimed).collect();
        if !unclaimed.is_empty() {
            writeln!(out, "| unclaimed | type | seen by |\n|---|---|---|")?;
            for thing in unclaimed.iter().take(self.limit()) {
                let cells = [&thing.canonical_id, &thing.resource_type, &thing.seen_by.join(", ")]
                    .map(|text| markdown_cell(text));
                writeln!(out, "| {} |", cells.join(" | "))?;
            }
            if unclaimed.len() > self.limit() {
                writeln!(out, "\n… and {} more.", unclaimed.len() - self.limit())?;
            }
            writeln!(out)?;
        }
        writeln!(out, "{}", markdown_cell(&self.result()))
    }
}
