//! `fake-aws`: the proxy as a program, for tests that are not written in Rust and for trying things by hand.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use fake_aws::{Emulator, Proxy, Settings};

/// A proxy before an emulator of AWS that injects faults by rules and counts calls. For tests.
///
/// It prints its address, which is what `AWS_ENDPOINT_URL` wants, and ends when standard input does.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address to listen on; loopback only
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Emulator for everything, or for one service: `URL` or `service=URL`
    #[arg(long = "emulator", value_name = "[SERVICE=]URL")]
    emulators: Vec<String>,
    /// Environment of `scripts/aws-env`: starts ministack from it
    #[arg(long, value_name = "FOLDER")]
    environment: Option<PathBuf>,
    /// Services that moto of the same environment answers: `organizations,budgets`
    #[arg(long, value_name = "SERVICES", value_delimiter = ',', requires = "environment")]
    moto: Vec<String>,
    /// JSON file with a list of rules
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// JSON files with fixtures
    #[arg(long, value_name = "FILE")]
    fixtures: Vec<PathBuf>,
    /// The same seed throttles the same calls
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stay until killed, whatever becomes of standard input
    #[arg(long)]
    stay: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = format!("error: {error}\n");
            let mut cause = error.source();
            while let Some(error) = cause {
                text += &format!("  because: {error}\n");
                cause = error.source();
            }
            let _ = io::stderr().write_all(text.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut emulators = BTreeMap::new();
    let mut everything = None;
    for emulator in &arguments.emulators {
        match emulator.split_once("=http") {
            Some((service, rest)) => {
                emulators.insert(service.to_owned(), format!("http{rest}").trim_end_matches('/').to_owned());
            }
            None => everything = Some(emulator.trim_end_matches('/').to_owned()),
        }
    }
    let mut started = Vec::new();
    if let Some(environment) = &arguments.environment {
        if everything.is_none() {
            let ministack = Emulator::ministack(environment)?;
            everything = Some(ministack.url().to_owned());
            started.push(ministack);
        }
        if !arguments.moto.is_empty() {
            let moto = Emulator::moto(environment)?;
            emulators.extend(arguments.moto.iter().map(|service| (service.clone(), moto.url().to_owned())));
            started.push(moto);
        }
    }
    let everything = everything.ok_or("no emulator: give --emulator URL or --environment FOLDER")?;
    let mut settings =
        Settings { listen: arguments.listen, seed: arguments.seed, emulators, ..Settings::before(everything) };
    if let Some(path) = &arguments.rules {
        settings.rules = read(path)?;
    }
    for path in &arguments.fixtures {
        settings.fixtures.extend(read::<fake_aws::fixture::File>(path)?.fixtures);
    }
    let proxy = Proxy::start(settings)?;
    writeln!(io::stdout(), "{}", proxy.url())?;
    io::stdout().flush()?;
    if arguments.stay {
        loop {
            std::thread::park();
        }
    }
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(path: &PathBuf) -> Result<T, Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
}
