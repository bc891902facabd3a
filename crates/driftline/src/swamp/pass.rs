//! Which data makes one observation together, and of which source.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::name::ScopeName;
use driftline_core::rule::Glob;
use driftline_core::{NameError, SourceName, StreamId};
use driftline_sources::normalize::Model;
use driftline_sources::swamp::{self, Recognised};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::word;
use crate::args::SwampArgs;
use crate::error::{CommandError, CommandResult};
use crate::settings::Settings;
use crate::swamp::collect::{Collected, Content, Datum, Item};

/// Items that one run of a model wrote follow each other within this time.
const ONE_RUN: SignedDuration = SignedDuration::from_mins(1);

/// Who reads the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Model(Model),
    /// The entry of the configuration with this position.
    Mapped(usize),
}

/// What becomes one observation.
#[derive(Debug)]
pub(crate) struct Pass<'c> {
    pub source: SourceName,
    /// The name of the data, where each is a stream of its own.
    instance: Option<ScopeName>,
    model_name: &'c str,
    pub reading: Reading,
    pub data: Vec<&'c Datum>,
    pub at: Timestamp,
    /// Nothing comes after it.
    pub is_newest: bool,
}

impl Pass<'_> {
    pub(crate) fn name(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{}@{instance}", self.source),
            None => self.source.to_string(),
        }
    }

    /// The stream of one of its listings. The name of the data comes last, so that it is found again.
    pub(crate) fn stream(&self, scope: Option<&ScopeName>) -> CommandResult<StreamId> {
        let scope = match (scope, &self.instance) {
            (Some(scope), Some(instance)) => {
                let joined = format!("{scope}/{instance}").parse();
                Some(joined.map_err(|error: NameError| CommandError::new(error.to_string()))?)
            }
            (scope, instance) => scope.or(instance.as_ref()).cloned(),
        };
        Ok(StreamId { source: self.source.clone(), scope })
    }

    /// Whether a stream is one of those that its listings go to.
    pub(crate) fn continues(&self, stream: &StreamId) -> bool {
        let last = |scope: &ScopeName| scope.as_str().rsplit('/').next().map(ToOwned::to_owned);
        stream.source == self.source
            && match &self.instance {
                None => true,
                Some(instance) => stream.scope.as_ref().and_then(last).is_some_and(|last| last == instance.as_str()),
            }
    }

    /// Names exactly what was read, so that the same is known again.
    pub(crate) fn observer(&self, state: &str) -> String {
        let mut hash = Sha256::new();
        for datum in &self.data {
            for part in [&datum.model_id, &datum.name, &datum.number.to_string(), &datum.created_at.to_string()] {
                hash.update(part.as_bytes());
                hash.update([0]);
            }
            hash.update([u8::from(matches!(datum.content, Content::Unreadable(_)))]);
        }
        hash.update(state.as_bytes());
        let digest: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let what = match &self.data[..] {
            [one] => format!("{} v{}", one.name, one.number),
            data => format!("{} items", data.len()),
        };
        format!("swamp {} {what} #{digest}", self.model_name)
    }
}

/// What is to be done, in order, and how much could not even be planned.
#[derive(Debug)]
pub(crate) struct Plan<'c> {
    pub passes: Vec<Pass<'c>>,
    pub failed: usize,
}

/// Items that are read together, or one that is read alone.
struct Group<'c> {
    reading: Reading,
    model_name: &'c str,
    /// Who it is; two of them must not share a name.
    owners: BTreeSet<String>,
    items: Vec<&'c Item>,
}

pub(crate) fn plan<'c>(settings: &Settings, args: &SwampArgs, collected: &'c Collected) -> CommandResult<Plan<'c>> {
    let wanted: Vec<Glob> = args.model.iter().map(Glob::new).collect();
    let wants =
        |names: [&str; 2]| wanted.is_empty() || wanted.iter().any(|glob| names.iter().any(|name| glob.matches(name)));
    let mut groups: BTreeMap<(SourceName, Option<ScopeName>), Group<'c>> = BTreeMap::new();
    let mut unknown: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut models: BTreeSet<&str> = BTreeSet::new();
    for item in &collected.items {
        models.insert(&item.model_name);
        if !wants([&item.model_name, &item.type_path]) {
            continue;
        }
        let Some(reading) = reading(settings, item) else {
            if swamp::recognise(&item.type_path, item.spec.as_deref(), &item.name) == Recognised::Unknown {
                unknown.insert((&item.type_path, item.spec.as_deref().unwrap_or_default()));
            }
            continue;
        };
        let refused = |error: NameError| CommandError::new(error.to_string());
        let source = match reading {
            Reading::Model(model) => format!("{}/{}", model.name(), word(&item.model_name)).parse().map_err(refused)?,
            Reading::Mapped(at) => settings.config.swamp_models[at].source.clone(),
        };
        let together = matches!(reading, Reading::Model(Model::Dns | Model::Terraform));
        let instance = if together { None } else { Some(word(&item.name).parse().map_err(refused)?) };
        let group = groups.entry((source, instance)).or_insert_with(|| Group {
            reading,
            model_name: &item.model_name,
            owners: BTreeSet::new(),
            items: Vec::new(),
        });
        let name = if together { "" } else { &item.name };
        group.owners.insert(format!("`{}` {} {name}", item.type_path, item.model_name).trim_end().to_owned());
        group.items.push(item);
    }
    note_unknown(settings, &unknown);
    let mut plan = Plan { passes: Vec::new(), failed: 0 };
    for failed in collected.failed.iter().filter(|failed| wants([&failed.type_path, &failed.label])) {
        plan.failed += 1;
        settings
            .printer
            .error(&CommandError::new(&failed.reason).about(format!("`{}` was not observed", failed.label)));
    }
    for ((source, instance), group) in groups {
        if group.owners.len() > 1 {
            plan.failed += 1;
            let owners: Vec<String> = group.owners.into_iter().collect();
            let name = instance.map_or_else(String::new, |instance| format!("@{instance}"));
            let error = CommandError::new(format!("{} would be one stream, `{source}{name}`", owners.join(" and ")))
                .hint("rename one of them in swamp, or map each with a [[swamp.model]] entry of its own");
            settings.printer.error(&error);
            continue;
        }
        group.passes(&source, instance.as_ref(), args.all_versions, &mut plan.passes);
    }
    if plan.passes.is_empty() && plan.failed == 0 {
        let models: Vec<&str> = models.into_iter().take(20).collect();
        return Err(CommandError::new("none of its data is of a model that is known or asked for")
            .hint(format!("its models are {}", models.join(", ")))
            .hint("docs/configuration.md tells how to map others with [[swamp.model]]"));
    }
    // The order of time; at one time, of names.
    plan.passes.sort_by(|left, right| {
        let order = |pass: &Pass<'_>| (pass.at, pass.source.clone(), pass.instance.clone());
        order(left).cmp(&order(right))
    });
    Ok(plan)
}

/// What the configuration says goes before what is known.
fn reading(settings: &Settings, item: &Item) -> Option<Reading> {
    let spec = item.spec.as_deref();
    let mapped = settings.config.swamp_models.iter().position(|entry| {
        (entry.model.matches(&item.type_path) || entry.model.matches(&item.model_name))
            && entry.spec.as_ref().is_none_or(|glob| spec.is_some_and(|spec| glob.matches(spec)))
    });
    if let Some(at) = mapped {
        return Some(Reading::Mapped(at));
    }
    match swamp::recognise(&item.type_path, spec, &item.name) {
        Recognised::As(model) => Some(Reading::Model(model)),
        Recognised::Copy => {
            settings.printer.note(&format!(
                "`{}` of the model `{}` is a copy of an earlier scan, and was left out",
                item.name, item.model_name
            ));
            None
        }
        Recognised::NotNeeded | Recognised::Unknown => None,
    }
}

fn note_unknown(settings: &Settings, unknown: &BTreeSet<(&str, &str)>) {
    let Some((model, spec)) = unknown.first() else { return };
    let name = |(model, spec): &(&str, &str)| {
        if spec.is_empty() { format!("`{model}`") } else { format!("`{model}` ({spec})") }
    };
    let names: Vec<String> = unknown.iter().take(20).map(name).collect();
    let more = if unknown.len() > 20 { format!(" and {} more", unknown.len() - 20) } else { String::new() };
    let spec = if spec.is_empty() { String::new() } else { format!(", spec = \"{spec}\"") };
    settings.printer.note(&format!(
        "left out, because nothing says how to read them: {}{more}\n\
         hint: map them in driftline.toml: [[swamp.model]] with model = \"{model}\"{spec}, source, id, type_name",
        names.join(", ")
    ));
}

impl<'c> Group<'c> {
    fn passes(
        &self,
        source: &SourceName,
        instance: Option<&ScopeName>,
        all_versions: bool,
        passes: &mut Vec<Pass<'c>>,
    ) {
        let pass = |data: Vec<&'c Datum>, at: Timestamp, is_newest: bool| Pass {
            source: source.clone(),
            instance: instance.cloned(),
            model_name: self.model_name,
            reading: self.reading,
            data,
            at,
            is_newest,
        };
        if !all_versions {
            let data: Vec<&Datum> = self.items.iter().map(|item| item.newest()).collect();
            if let Some(at) = data.iter().map(|datum| datum.created_at).max() {
                passes.push(pass(data, at, true));
            }
            return;
        }
        // What is known of each item changes with every version of it. Those that one run wrote come as one.
        let mut versions: Vec<(usize, &Datum)> = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            versions.extend(item.history.iter().map(|datum| (at, datum)));
        }
        versions.sort_by(|(_, left), (_, right)| {
            (left.created_at, &left.label, &left.number).cmp(&(right.created_at, &right.label, &right.number))
        });
        let mut state: BTreeMap<usize, &Datum> = BTreeMap::new();
        let mut written: BTreeSet<usize> = BTreeSet::new();
        let mut versions = versions.into_iter().peekable();
        while let Some((item, datum)) = versions.next() {
            state.insert(item, datum);
            written.insert(item);
            let goes_on = versions.peek().is_some_and(|(next, later)| {
                !written.contains(next) && later.created_at.duration_since(datum.created_at) <= ONE_RUN
            });
            if !goes_on {
                written.clear();
                passes.push(pass(state.values().copied().collect(), datum.created_at, versions.peek().is_none()));
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn item(name: &str, written: &[(u32, i64)]) -> Item {
        let datum = |(version, second): &(u32, i64)| Datum {
            label: format!("{name} v{version}"),
            name: name.to_owned(),
            model_id: "m".to_owned(),
            number: version.to_string().parse().unwrap(),
            created_at: Timestamp::from_second(*second).unwrap(),
            content: Content::Gone,
        };
        Item {
            type_path: "@acme/terraform".to_owned(),
            model_name: "network".to_owned(),
            spec: None,
            name: name.to_owned(),
            step: None,
            history: written.iter().map(datum).collect(),
        }
    }

    /// The data of each pass, as `time: a1 b2`.
    fn planned(items: &[Item], all_versions: bool) -> Vec<String> {
        let group = Group {
            reading: Reading::Model(Model::Terraform),
            model_name: "network",
            owners: BTreeSet::new(),
            items: items.iter().collect(),
        };
        let mut passes = Vec::new();
        group.passes(&"terraform/network".parse().unwrap(), None, all_versions, &mut passes);
        assert!(passes.iter().rev().skip(1).all(|pass| !pass.is_newest) && passes.last().unwrap().is_newest);
        let text = |pass: &Pass<'_>| {
            let data: Vec<String> = pass.data.iter().map(|datum| format!("{}{}", datum.name, datum.number)).collect();
            format!("{}: {}", pass.at.as_second(), data.join(" "))
        };
        passes.iter().map(text).collect()
    }

    #[test]
    fn what_one_run_wrote_is_one_pass() {
        let items = [item("a", &[(1, 0), (2, 1000)]), item("b", &[(1, 1), (2, 1001)]), item("c", &[(1, 1002)])];
        assert_eq!(planned(&items, true), ["1: a1 b1", "1002: a2 b2 c1"]);
        assert_eq!(planned(&items, false), ["1002: a2 b2 c1"]);
    }

    #[test]
    fn the_same_data_twice_is_two_runs_however_near() {
        let items = [item("a", &[(1, 0), (2, 2)]), item("b", &[(1, 1), (2, 3)])];
        assert_eq!(planned(&items, true), ["1: a1 b1", "3: a2 b2"]);
        // What is not written again is still as it was.
        let items = [item("a", &[(1, 0), (2, 500), (3, 900)]), item("b", &[(1, 1)])];
        assert_eq!(planned(&items, true), ["1: a1 b1", "500: a2 b1", "900: a3 b1"]);
    }

    #[test]
    fn the_name_of_what_was_read_is_another_for_anything_else() {
        let observer = |items: &[Item]| {
            let pass = Pass {
                source: "s".parse().unwrap(),
                instance: None,
                model_name: "network",
                reading: Reading::Mapped(0),
                data: items.iter().map(Item::newest).collect(),
                at: Timestamp::UNIX_EPOCH,
                is_newest: true,
            };
            pass.observer("whole")
        };
        let one = observer(&[item("a", &[(7, 0)])]);
        assert!(one.starts_with("swamp network a v7 #"), "{one}");
        assert_eq!(one, observer(&[item("a", &[(7, 0)])]));
        for other in [[item("a", &[(8, 0)])], [item("a", &[(7, 1)])], [item("b", &[(7, 0)])]] {
            assert_ne!(one, observer(&other));
        }
        assert!(observer(&[item("a", &[(7, 0)]), item("b", &[(1, 0)])]).starts_with("swamp network 2 items #"));
    }
}
