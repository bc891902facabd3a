//! `mcp`: answers agents. Each tool is a command whose result is caught as JSON, made short, and rid of what is sealed.

#[cfg(not(feature = "mcp"))]
pub(crate) fn run(_: &crate::settings::Settings) -> crate::error::CommandResult<()> {
    Err(crate::error::CommandError::new("this driftline was built without the Model Context Protocol")
        .hint("build it with the feature `mcp`, which is on unless --no-default-features is given"))
}

#[cfg(feature = "mcp")]
pub(crate) use with_mcp::run;

#[cfg(feature = "mcp")]
mod bounds;

#[cfg(feature = "mcp")]
mod with_mcp {
    use std::cmp::Reverse;
    use std::sync::{Arc, Mutex, PoisonError};

    use driftline_core::Severity;
    use driftline_core::rule::Glob;
    use driftline_mcp::{Answers, Refusal, ServeError};
    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Map, Value as Json, json};

    use super::bounds::{bounded, unsealed};
    use crate::args::{
        BlameArgs, DriftArgs, ExplainArgs, FailOn, HistoryArgs, LogArgs, PointArgs, PostureArgs, ShownArgs,
        TopologyArgs, VelocityArgs, VerdictArgs,
    };
    use crate::error::{CommandError, CommandResult};
    use crate::output::Ear;
    use crate::settings::{DEFAULT_STALE_AFTER, Settings};
    use crate::surroundings::clock;
    use crate::{blame, drift, explain, posture, topology, upkeep, velocity};

    /// How many changes of a resource a list shows.
    const CHANGES: usize = 10;

    pub(crate) fn run(settings: &Settings) -> CommandResult<()> {
        let desk = Desk { settings: settings.at(settings.now, None) };
        driftline_mcp::serve(desk, env!("CARGO_PKG_VERSION")).map_err(|error| {
            let told = CommandError::because("agents can no longer be answered", &error);
            match error {
                ServeError::Initialize(_) => told
                    .hint("this command is started by a client of the Model Context Protocol; docs/mcp.md shows how"),
                _ => told,
            }
        })
    }

    /// Answers from the store as it is when it is asked, with the configuration as it was at the start.
    struct Desk {
        settings: Settings,
    }

    /// What a command printed and said.
    #[derive(Debug, Default)]
    struct Caught {
        json: Mutex<Vec<u8>>,
        remarks: Mutex<Vec<String>>,
    }

    impl Ear for Caught {
        fn hear(&self, level: &'static str, text: &str) {
            if level != "info" {
                self.remarks.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
            }
        }

        fn take(&self, json: Vec<u8>) {
            *self.json.lock().unwrap_or_else(PoisonError::into_inner) = json;
        }
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct DriftQuestion {
        baseline: Option<String>,
        #[serde(default)]
        sources: Vec<String>,
        status: Option<Vec<String>>,
        min_severity: Option<String>,
        r#type: Option<String>,
        text: Option<String>,
        since: Option<String>,
        limit: Option<usize>,
        cursor: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct FindQuestion {
        r#where: String,
        baseline: Option<String>,
        #[serde(default)]
        sources: Vec<String>,
        limit: Option<usize>,
        cursor: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ResourceQuestion {
        resource: String,
        baseline: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct HistoryQuestion {
        resource: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct VelocityQuestion {
        baseline: Option<String>,
        #[serde(default)]
        sources: Vec<String>,
        at: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LogQuestion {
        source: Option<String>,
        limit: Option<usize>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct PostureQuestion {
        baseline: Option<String>,
        #[serde(default)]
        sources: Vec<String>,
        since: Option<String>,
        rule: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TopologyQuestion {
        baseline: Option<String>,
        #[serde(default)]
        sources: Vec<String>,
        since: Option<String>,
        #[serde(default)]
        network: bool,
        #[serde(default)]
        all: bool,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoQuestion {}

    fn asked<T: DeserializeOwned>(arguments: Map<String, Json>) -> CommandResult<T> {
        serde_json::from_value(Json::Object(arguments))
            .map_err(|error| CommandError::new(format!("the arguments are not as the tool's schema has them: {error}")))
    }

    #[cfg(feature = "sql")]
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SqlQuestion {
        sql: String,
        limit: Option<usize>,
    }

    impl Answers for Desk {
        fn knows(&self, tool: &str) -> bool {
            cfg!(feature = "sql") || tool != "query"
        }

        fn answer(&self, tool: &str, arguments: Map<String, Json>) -> Result<Json, Refusal> {
            self.ask(tool, arguments).map_err(|error| {
                let message = error.to_string();
                let message = message.strip_prefix("error: ").unwrap_or(&message);
                let message = message.split("\nhint: ").next().unwrap_or_default().to_owned();
                Refusal { message, hints: error.hints().to_vec() }
            })
        }
    }

    impl Desk {
        fn ask(&self, tool: &str, arguments: Map<String, Json>) -> CommandResult<Json> {
            let caught = Arc::new(Caught::default());
            let settings = self.settings.at(clock(), Some(caught.clone()));
            let mut page = None;
            match tool {
                "drift" => page = Some(ask_drift(&settings, asked(arguments)?)?),
                "find" => page = Some(ask_find(&settings, asked(arguments)?)?),
                "explain" => {
                    let ResourceQuestion { resource, baseline } = asked(arguments)?;
                    explain::explain(&settings, &ExplainArgs { resource, baseline })?;
                }
                "history" => {
                    let HistoryQuestion { resource } = asked(arguments)?;
                    explain::history(&settings, &HistoryArgs { resource })?;
                }
                "blame" => {
                    let ResourceQuestion { resource, baseline } = asked(arguments)?;
                    blame::run(&settings, &BlameArgs { resource, baseline, all: false, live: false, profile: None })?;
                }
                "velocity" => {
                    let VelocityQuestion { baseline, sources: source, at } = asked(arguments)?;
                    velocity::run(&settings, &VelocityArgs { baseline, source, at })?;
                }
                "log" => {
                    let LogQuestion { source, limit } = asked(arguments)?;
                    upkeep::log(&settings, &LogArgs { source, limit: limit.unwrap_or(20).clamp(1, 100) })?;
                }
                "posture" => {
                    let PostureQuestion { baseline, sources: source, since, rule } = asked(arguments)?;
                    let args = PostureArgs { baseline, source, at: None, since, rule, fail_on_new: false };
                    posture::run(&settings, &args)?;
                }
                "topology" => {
                    let TopologyQuestion { baseline, sources: source, since, network, all } = asked(arguments)?;
                    let points = PointArgs { baseline, source, at: None, since, between: None };
                    topology::run(&settings, &TopologyArgs { points, network, all })?;
                }
                #[cfg(feature = "sql")]
                "query" => {
                    let SqlQuestion { sql, limit } = asked(arguments)?;
                    crate::query::answer(&settings, &sql, limit.unwrap_or(20).clamp(1, 100))?;
                }
                "sources" => {
                    let NoQuestion {} = asked(arguments)?;
                    return sources(&settings).map(|answer| finish(answer, &caught));
                }
                other => return Err(CommandError::new(format!("there is no tool `{other}`"))),
            }
            let json = std::mem::take(&mut *caught.json.lock().unwrap_or_else(PoisonError::into_inner));
            let mut answer: Json =
                serde_json::from_slice(&json).map_err(|error| CommandError::because("there is no answer", &error))?;
            if let Some(page) = &page {
                page.turn(&mut answer)?;
            }
            if let Some(events) = answer.get_mut("events").and_then(Json::as_array_mut) {
                events.reverse();
            }
            let mut answer = finish(answer, &caught);
            if let Some(page) = page {
                page.point_on(&mut answer);
            }
            Ok(answer)
        }
    }

    fn finish(mut answer: Json, caught: &Caught) -> Json {
        unsealed(&mut answer);
        let remarks = std::mem::take(&mut *caught.remarks.lock().unwrap_or_else(PoisonError::into_inner));
        bounded(&answer, &remarks)
    }

    /// One page of a list that is filtered here.
    struct Paging {
        keep: Box<dyn Fn(&Json) -> bool>,
        limit: usize,
        from: usize,
        /// What the store was at when it was asked; a page of another answer is no page of this one.
        revision: u64,
    }

    impl Paging {
        fn new(
            settings: &Settings,
            limit: Option<usize>,
            cursor: Option<&str>,
            keep: impl Fn(&Json) -> bool + 'static,
        ) -> CommandResult<Self> {
            let revision = settings.open_store()?.catalog().records();
            let from = match cursor {
                None => 0,
                Some(cursor) => {
                    let parts =
                        cursor.split_once('-').and_then(|(at, from)| Some((at.parse().ok()?, from.parse().ok()?)));
                    let (at, from): (u64, usize) = parts.ok_or_else(|| {
                        CommandError::new(format!("`{cursor}` is not a cursor"))
                            .hint("give `nextCursor` of the answer before")
                    })?;
                    if at != revision {
                        return Err(CommandError::new("the store has changed since that page")
                            .hint("ask again without `cursor`"));
                    }
                    from
                }
            };
            Ok(Self { keep: Box::new(keep), limit: limit.unwrap_or(20).clamp(1, 100), from, revision })
        }

        fn turn(&self, answer: &mut Json) -> CommandResult<()> {
            let Some(resources) = answer.get_mut("resources").and_then(Json::as_array_mut) else {
                return Err(CommandError::new("the answer has no list"));
            };
            let mut kept: Vec<Json> = std::mem::take(resources).into_iter().filter(|one| (self.keep)(one)).collect();
            kept.sort_by_key(|one| Reverse(severity(one)));
            let total = kept.len();
            let page: Vec<Json> = kept.into_iter().skip(self.from).take(self.limit).map(shortened).collect();
            *resources = page;
            answer["total"] = total.into();
            if let Some(members) = answer.as_object_mut() {
                // These are about the whole store; other tools tell them.
                members.remove("sources");
                members.remove("rules");
            }
            Ok(())
        }
    }

    impl Paging {
        /// Where the next page begins: after what is left of this one when it was cut to what an answer may be.
        fn point_on(&self, answer: &mut Json) {
            let next = self.from + answer["resources"].as_array().map_or(0, Vec::len);
            if (next as u64) < answer["total"].as_u64().unwrap_or_default() {
                answer["nextCursor"] = format!("{}-{next}", self.revision).into();
            }
        }
    }

    fn severity(resource: &Json) -> Option<Severity> {
        resource["severity"].as_str().and_then(|level| level.parse().ok())
    }

    /// The first changes, and how many differences were excused.
    fn shortened(mut resource: Json) -> Json {
        let count = |value: &Json| value.as_array().map_or(0, Vec::len);
        resource["changeCount"] = count(&resource["changes"]).into();
        resource["excusedCount"] = count(&resource["excused"]).into();
        if let Some(members) = resource.as_object_mut() {
            members.remove("excused");
        }
        if let Some(changes) = resource.get_mut("changes").and_then(Json::as_array_mut) {
            changes.truncate(CHANGES);
        }
        resource
    }

    fn question(
        baseline: Option<String>,
        source: Vec<String>,
        since: Option<String>,
        filter: Option<String>,
    ) -> DriftArgs {
        DriftArgs {
            points: PointArgs { baseline, source, at: None, since, between: None },
            across: None,
            print_sql: None,
            engine: None,
            engine_timeout: String::new(),
            shown: ShownArgs { filter, all: false, limit: 0 },
            verdict: VerdictArgs { fail_on: FailOn::Never, strict: false, exit_zero: true },
        }
    }

    fn ask_drift(settings: &Settings, asked: DriftQuestion) -> CommandResult<Paging> {
        let least = asked.min_severity.as_deref().map(str::parse::<Severity>).transpose();
        let least = least.map_err(|error| CommandError::new(error.to_string()))?;
        let status = asked.status.unwrap_or_else(|| vec!["drifted".into(), "unknown".into()]);
        if let Some(wrong) = status.iter().find(|one| !["drifted", "unknown", "not_checked"].contains(&one.as_str())) {
            return Err(CommandError::new(format!("`{wrong}` is not a status that is listed"))
                .hint("the statuses are drifted, unknown and not_checked"));
        }
        let (kind, text) = (asked.r#type.map(Glob::new), asked.text);
        let keep = move |one: &Json| {
            let is = |name: &str, test: &dyn Fn(&str) -> bool| one[name].as_str().is_some_and(test);
            is("status", &|found| status.iter().any(|wanted| wanted == found))
                && kind.as_ref().is_none_or(|kind| is("resourceType", &|found| kind.matches(found)))
                && text.as_ref().is_none_or(|text| is("canonicalId", &|found| found.contains(text.as_str())))
                && least.is_none_or(|least| severity(one).is_some_and(|found| found >= least))
        };
        let paging = Paging::new(settings, asked.limit, asked.cursor.as_deref(), keep)?;
        drift::run(settings, &question(asked.baseline, asked.sources, asked.since, None))?;
        Ok(paging)
    }

    fn ask_find(settings: &Settings, asked: FindQuestion) -> CommandResult<Paging> {
        let paging = Paging::new(settings, asked.limit, asked.cursor.as_deref(), |_| true)?;
        drift::run(settings, &question(asked.baseline, asked.sources, None, Some(asked.r#where)))?;
        Ok(paging)
    }

    fn sources(settings: &Settings) -> CommandResult<Json> {
        let store = settings.open_store()?;
        let stale_after = settings.config.stale_after.unwrap_or(DEFAULT_STALE_AFTER);
        let source = |(id, stream): (&driftline_core::StreamId, &driftline_store::Stream)| {
            let head = stream.head()?;
            Some(json!({
                "name": id,
                "version": head.number,
                "takenAt": head.taken_at,
                "stale": settings.now.duration_since(head.taken_at) > stale_after,
                "resources": head.rows,
                "extents": {"complete": head.complete_extents, "partial": head.partial_extents},
                "versions": stream.versions().count(),
                "observer": head.observer,
                "problems": head.problems,
            }))
        };
        let sources: Vec<Json> = store.catalog().streams().filter_map(source).collect();
        Ok(json!({"sources": sources}))
    }
}
