//! `operator`: the Kubernetes operator, given a clock, a store and a log.

#[cfg(not(feature = "kube"))]
pub(crate) fn run(_: crate::settings::Settings, _: &crate::args::OperatorArgs) -> crate::error::CommandResult<()> {
    Err(crate::error::CommandError::new("this driftline was built without the operator")
        .hint("build it with the feature `kube`, which is on unless --no-default-features is given"))
}

#[cfg(feature = "kube")]
pub(crate) use with_kube::run;

#[cfg(feature = "kube")]
mod with_kube {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use driftline_kube::crd::{definitions, to_yaml};
    use driftline_kube::decision::{Decision, Policy};
    use driftline_kube::lease::LeaseOptions;
    use driftline_kube::operator::{OperatorError, Options, Sink};
    use driftline_kube::plan::Planned;
    use driftline_kube::service::{self, Connections, ServiceError};
    use driftline_kube::settings::Defaults;
    use driftline_kube::status::sentence;
    use serde::Serialize;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;

    use crate::args::{DriftPolicy, OperatorArgs, OperatorCommand};
    use crate::error::{CommandError, CommandResult};
    use crate::observe::commit_seen;
    use crate::output::{Page, Show, count, markdown_table, write_out};
    use crate::settings::Settings;
    use crate::surroundings::{clock, text_variable};
    use crate::time::parse_duration;

    /// As long as other operators have it.
    const LEASE: Duration = Duration::from_secs(15);

    pub(crate) fn run(settings: Settings, args: &OperatorArgs) -> CommandResult<()> {
        if let Some(OperatorCommand::Crds) = &args.command {
            return print_definitions();
        }
        let resync = parse_duration(&args.resync)?;
        let resync = Duration::try_from(resync).ok().filter(|resync| *resync >= Duration::from_secs(1));
        let resync = resync.ok_or_else(|| CommandError::new("--resync must be at least a second"))?;
        let policy = match args.drift_policy {
            DriftPolicy::Enforce => Policy::Enforce,
            DriftPolicy::Report => Policy::Report,
            DriftPolicy::Suspend => Policy::Suspend,
        };
        let defaults = Defaults { policy, resync };
        let connections = Connections {
            context: args.context.clone(),
            region: args.region.clone(),
            profile: args.profile.clone(),
            user_agent: concat!("driftline-operator/", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        if args.dry_run {
            let planned =
                service::dry_run(&connections, defaults, &args.namespace, clock).map_err(|error| told(&error))?;
            return settings.printer.print(&Plan(planned));
        }
        log(&settings);
        let identity =
            format!("{}_{}", text_variable("HOSTNAME").unwrap_or_else(|| "driftline".into()), std::process::id());
        let lease = args.leader_election.then(|| LeaseOptions {
            name: args.lease_name.clone(),
            namespace: args.lease_namespace.clone(),
            // A pod that starts again may have the same name and number: the time makes it another one.
            identity: format!("{identity}_{}", clock().as_millisecond()),
            length: LEASE,
        });
        let store = store(settings, args)?;
        let options = Options {
            defaults,
            namespaces: args.namespace.clone(),
            listen: args.listen,
            max_concurrent: args.max_concurrent,
            lease,
            identity,
            clock,
            store,
        };
        service::serve(&connections, options).map_err(|error| told(&error))
    }

    fn print_definitions() -> CommandResult<()> {
        let mut text = String::new();
        for (_, definition) in definitions() {
            let yaml = to_yaml(&definition).map_err(|error| CommandError::new(error.to_string()))?;
            text += &format!("---\n{yaml}");
        }
        write_out(text.as_bytes())
    }

    /// Where observations go, if a store was named.
    fn store(
        settings: Settings,
        args: &OperatorArgs,
    ) -> CommandResult<Option<(String, driftline_core::StreamId, Sink)>> {
        if settings.store_from == "default" {
            return Ok(None);
        }
        let named = args.cluster.clone().or_else(|| service::cluster_name(args.context.as_deref()));
        let allowed = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "-_.".contains(char);
        let named = named.unwrap_or_else(|| "cluster".into()).to_lowercase();
        let cluster: String = named.chars().map(|char| if allowed(char) { char } else { '-' }).collect();
        let cluster = cluster.trim_matches(['-', '.', '_']);
        let stream = format!("operator/{cluster}").parse().map_err(|error: driftline_core::NameError| {
            CommandError::new(error.to_string()).hint("name the cluster with --cluster")
        })?;
        let settings = Mutex::new(settings);
        let sink: Sink = Arc::new(move |seen| {
            let mut settings = settings.lock().map_err(|_| "an earlier commit broke down".to_owned())?;
            settings.now = clock();
            commit_seen(&settings, seen).map(|_| ()).map_err(|error| error.to_string())
        });
        Ok(Some((cluster.to_owned(), stream, sink)))
    }

    /// What is done goes to standard error, a line each.
    fn log(settings: &Settings) {
        let level = match (settings.printer.is_quiet(), settings.printer.is_verbose()) {
            (true, _) => LevelFilter::WARN,
            (_, true) => LevelFilter::DEBUG,
            _ => LevelFilter::INFO,
        };
        let targets = Targets::new().with_target("driftline_kube", level).with_default(LevelFilter::WARN);
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
    }

    fn told(error: &ServiceError) -> CommandError {
        let hint = match error {
            ServiceError::Operator(OperatorError::NoDefinition { .. }) => {
                Some("install them: driftline operator crds | kubectl apply -f -")
            }
            ServiceError::Operator(OperatorError::Forbidden { .. }) => {
                Some("docs/operator.md lists the rights that the operator needs")
            }
            ServiceError::Operator(OperatorError::Listen { .. }) => Some("choose another address with --listen"),
            ServiceError::Operator(OperatorError::LeaseLost) => Some("start it again; it waits for its turn"),
            ServiceError::Cluster(_) => Some("set KUBECONFIG, or give a context of it with --context"),
            ServiceError::Aws(_) => Some("the usual settings of AWS hold: AWS_PROFILE, AWS_REGION, ~/.aws/config"),
            _ => None,
        };
        let told = CommandError::because("the operator ended", error);
        match hint {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }

    /// What would be done.
    struct Plan(Vec<Planned>);

    /// What a decision means, in a few words.
    fn words(decision: Decision) -> &'static str {
        match decision {
            Decision::Release => "let the object go",
            Decision::Dismantle => "switch off and delete",
            Decision::Wait => "wait for AWS",
            Decision::Create => "create",
            Decision::Recreate => "create again: someone deleted it",
            Decision::ReportDeletion => "report: someone deleted it",
            Decision::Settle => "nothing: in sync",
            Decision::Acknowledge => "nothing: the changed declaration means the same",
            Decision::Apply => "write the changed declaration",
            Decision::ApplyOverDrift => "write the changed declaration over drift",
            Decision::Correct => "correct drift",
            Decision::ReportDrift => "report drift",
            Decision::Leave => "nothing: suspended",
        }
    }

    impl Plan {
        fn rows(&self) -> Vec<Vec<String>> {
            let row = |one: &Planned| {
                let what = match (&one.decision, &one.error) {
                    (Some(decision), _) => words(*decision).to_owned(),
                    (None, error) => format!("refuse: {}", error.as_deref().unwrap_or("unknown")),
                };
                let policy = one.policy.map_or("-", Policy::name).to_owned();
                let name = format!("{}/{}", one.namespace, one.name);
                vec![one.kind.name().to_owned(), name, policy, what, sentence(&one.fields, one.more)]
            };
            self.0.iter().map(row).collect()
        }
    }

    impl Show for Plan {
        fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
            for row in self.rows() {
                let [kind, name, policy, what, fields] = &row[..] else { continue };
                writeln!(page, "{kind} {name} ({policy}): {what}")?;
                for field in fields.split("; ").filter(|field| !field.is_empty()) {
                    writeln!(page, "    {field}")?;
                }
            }
            let writes = self.0.iter().filter(|one| one.writes).count();
            writeln!(
                page,
                "result: {}, {} to AWS; nothing was written",
                count(self.0.len(), "object"),
                count(writes, "write")
            )
        }

        fn json(&self, out: &mut dyn Write) -> io::Result<()> {
            #[derive(Serialize)]
            struct All<'a> {
                schema: &'a str,
                objects: &'a [Planned],
            }
            Ok(serde_json::to_writer_pretty(out, &All { schema: "driftline.plan/v1", objects: &self.0 })?)
        }

        fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
            for one in &self.0 {
                serde_json::to_writer(&mut *out, one)?;
                writeln!(out)?;
            }
            Ok(())
        }

        fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
            let mut rows =
                vec![["kind", "object", "policy", "would", "declared -> live"].map(ToOwned::to_owned).to_vec()];
            rows.extend(self.rows());
            markdown_table(&rows, out)
        }
    }
}
