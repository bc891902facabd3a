//! The program: arguments, clock, configuration, printing and exit codes. The only place where the parts meet.

mod accounts;
mod across;
mod args;
mod baseline;
mod blame;
mod buckets;
mod cluster;
mod compare;
mod config;
mod demo;
mod demo_data;
mod demo_documents;
mod demo_relations;
#[cfg(test)]
mod demo_tests;
mod determinism;
mod documents;
mod draw;
mod drift;
#[cfg(feature = "ballista")]
mod engine;
#[cfg(not(feature = "ballista"))]
#[path = "engine_missing.rs"]
mod engine;
mod error;
mod exit;
mod explain;
mod filter;
mod fleet;
mod fleet_args;
mod jsonata;
mod layout;
#[cfg(feature = "aws")]
mod live;
#[cfg(not(feature = "aws"))]
#[path = "live_missing.rs"]
mod live;
mod live_args;
mod mcp;
mod observe;
mod observe_all;
mod observed;
mod operator;
mod orphans;
mod output;
mod ownership;
mod place;
mod posture;
#[cfg(feature = "sql")]
mod query;
#[cfg(not(feature = "sql"))]
#[path = "query_missing.rs"]
mod query;
mod query_args;
mod report;
mod schema;
mod seal;
mod serve;
mod serve_args;
mod settings;
mod severity;
mod statement;
mod surroundings;
mod survey;
mod swamp;
mod swept;
mod time;
mod topology;
mod trail;
mod upkeep;
mod velocity;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command, ConfigCommand};
use crate::error::CommandResult;
use crate::output::Printer;
use crate::settings::Settings;

/// Many small texts are made and dropped; the system's allocator takes a third of a large drift report.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let parsed = Cli::command().try_get_matches().and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        // Help and version are answers; anything else is an error, and 2 is taken: it means drift.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::ERROR } else { exit::IN_SYNC });
        }
    };
    // These bring what is under way to its end first.
    if !matches!(
        cli.command,
        Command::Operator(_) | Command::Serve(_) | Command::Watch(_) | Command::Query(_) | Command::Engine(_)
    ) {
        exit_on_signals();
    }
    let fallback = Printer::plain(&cli.global);
    let outcome =
        Settings::resolve(&cli.global, |name| matches.value_source(name), surroundings::clock()).and_then(|settings| {
            match cli.command {
                Command::Operator(args) => operator::run(settings, &args).map(|()| exit::IN_SYNC),
                Command::Serve(args) => serve::run(settings, &args).map(|()| exit::IN_SYNC),
                command => run(&settings, command),
            }
        });
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            fallback.error(&error);
            ExitCode::from(exit::ERROR)
        }
    }
}

fn run(settings: &Settings, command: Command) -> CommandResult<u8> {
    match command {
        Command::Drift(args) => return drift::run(settings, &args),
        Command::Compare(args) => return compare::run(settings, &args),
        Command::Diff(args) => return drift::diff(settings, &args),
        Command::Orphans(args) => return orphans::run(settings, &args),
        Command::Ownership(args) => ownership::run(settings, &args)?,
        Command::Posture(args) => return posture::run(settings, &args),
        Command::Topology(args) => topology::run(settings, &args)?,
        Command::Demo(args) => demo::run(settings, &args)?,
        Command::Observe(command) => return observe::run(settings, *command),
        Command::Baseline(command) => baseline::run(settings, command)?,
        Command::Blame(args) => blame::run(settings, &args)?,
        Command::Explain(args) => explain::explain(settings, &args)?,
        Command::Velocity(args) => velocity::run(settings, &args)?,
        Command::History(args) => explain::history(settings, &args)?,
        Command::Fleet(args) => return fleet::run(settings, &args),
        Command::Log(args) => upkeep::log(settings, &args)?,
        Command::Verify => upkeep::verify(settings)?,
        Command::Gc(args) => upkeep::gc(settings, &args)?,
        Command::Doctor(args) if !args.determinism.is_empty() => {
            determinism::run(settings, &args.determinism, args.model.as_deref())?;
        }
        Command::Doctor(_) => upkeep::doctor(settings)?,
        Command::Jsonata(args) => jsonata::run(settings, &args)?,
        Command::Schema(args) => schema::run(settings, &args)?,
        Command::Mcp => mcp::run(settings)?,
        Command::Query(args) => return query::run(settings, &args),
        Command::Engine(command) => engine::run(settings, &command)?,
        Command::Watch(args) => return watch::run(settings, &args),
        Command::IamPolicy(args) => live::iam_policy(settings, &args)?,
        Command::Operator(_) | Command::Serve(_) => {
            return Err(error::CommandError::new("what runs until it is stopped is run by `main`"));
        }
        Command::Config(ConfigCommand::View) => upkeep::config_view(settings)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "driftline", &mut script);
            output::write_out(&script)?;
        }
    }
    Ok(exit::IN_SYNC)
}

/// An interrupted run never exits with 0; a commit that is under way is all or nothing, so it can simply end.
fn exit_on_signals() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                surroundings::leave(if signal == SIGINT { exit::INTERRUPTED } else { exit::TERMINATED });
            }
        });
    }
}
