//! The command line of `query` and `engine`, as clap sees it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::error::{CommandError, CommandResult};

#[derive(Debug, Args)]
#[command(after_help = "Views: resources, resources_at(TIME) and resources_at(STREAM, VERSION), changes, findings, \
    versions, baselines, history. Output: -o table, json, ndjson, csv, markdown, or parquet=FILE. See docs/query.md.\n\n\
    Start with: driftline query --list")]
pub(crate) struct QueryArgs {
    /// The question in SQL, or the name of a query (--list shows them). `-` reads SQL from standard input.
    #[arg(value_name = "SQL|NAME", required_unless_present_any = ["file", "list"], env = "DRIFTLINE_QUERY")]
    pub question: Option<String>,
    /// Read the SQL from a file; `-` is standard input.
    #[arg(short, long, value_name = "FILE", env = "DRIFTLINE_FILE", conflicts_with_all = ["question", "list"])]
    pub file: Option<PathBuf>,
    /// List the queries that have a name, with their parameters.
    #[arg(long, env = "DRIFTLINE_LIST", value_parser = clap::builder::FalseyValueParser::new(),
        conflicts_with = "question")]
    pub list: bool,
    /// Print the SQL of a named query, with its parameters in place, and do not ask it.
    #[arg(long, env = "DRIFTLINE_SHOW", value_parser = clap::builder::FalseyValueParser::new(), conflicts_with = "list")]
    pub show: bool,
    /// A value for `$NAME` in the query; repeatable.
    #[arg(long = "param", short, value_name = "NAME=VALUE", env = "DRIFTLINE_PARAM")]
    pub parameters: Vec<String>,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Ask a Ballista cluster instead of this machine: ballista://host:port of its scheduler.
    #[arg(long, value_name = "ADDRESS", env = "DRIFTLINE_ENGINE")]
    pub engine: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// How long a query may take.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_TIMEOUT", default_value = "60s")]
    pub timeout: String,
    /// How much memory it may use, its result included.
    #[arg(long, value_name = "SIZE", env = "DRIFTLINE_MEMORY", default_value = "1GiB")]
    pub memory: String,
    /// How much disk it may use for what does not fit into memory; 0 for none.
    #[arg(long, value_name = "SIZE", env = "DRIFTLINE_SPILL", default_value = "10GiB")]
    pub spill: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Takes queries and hands their parts to executors.
    Scheduler {
        /// Where to listen. Whoever reaches it can read every store that the executors can.
        #[arg(long, value_name = "ADDRESS", env = "DRIFTLINE_BIND", default_value = "127.0.0.1:50050")]
        bind: std::net::SocketAddr,
    },
    /// Does the work. It must reach the store by the same name as whoever asks.
    Executor {
        /// The scheduler to work for.
        #[arg(long, value_name = "ADDRESS", env = "DRIFTLINE_SCHEDULER", default_value = "ballista://127.0.0.1:50050")]
        scheduler: String,
        /// Where to listen for other executors; port 0 takes a free one.
        #[arg(long, value_name = "ADDRESS", env = "DRIFTLINE_BIND", default_value = "127.0.0.1:0")]
        bind: std::net::SocketAddr,
        /// The name by which others reach it [default: the address of --bind].
        #[arg(long, value_name = "NAME", env = "DRIFTLINE_ADVERTISE")]
        advertise: Option<String>,
        /// How many parts it works on at once [default: as many as there are processors].
        #[arg(long, value_name = "N", env = "DRIFTLINE_TASKS", value_parser = clap::value_parser!(u16).range(1..=1024))]
        tasks: Option<u16>,
        /// How much memory all of them may use together.
        #[arg(long, value_name = "SIZE", env = "DRIFTLINE_MEMORY", default_value = "2GiB")]
        memory: String,
    },
}

/// `1GiB`, `512MiB`, `64KiB`, `2G`, or bytes.
#[cfg_attr(
    all(not(feature = "sql"), not(test)),
    expect(dead_code, reason = "sizes are only read where they are kept to")
)]
pub(crate) fn parse_size(text: &str) -> CommandResult<u64> {
    let wrong = || CommandError::new(format!("`{text}` is not a size")).hint("write it like 512MiB, 1GiB or 64KiB");
    let split = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| wrong())?;
    let unit: u64 = match text[split..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("512MiB", Some(512 << 20)),
            ("1g", Some(1 << 30)),
            ("2GB", Some(2_000_000_000)),
            ("", None),
            ("GiB", None),
            ("1.5GiB", None),
            ("1 GiB", None),
            ("99999999999TiB", None),
        ] {
            assert_eq!(parse_size(text).ok(), bytes, "{text}");
        }
    }
}
