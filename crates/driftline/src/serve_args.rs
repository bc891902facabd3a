//! The command line of `serve`, as clap sees it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "Reading and writing are separate: whoever has the read token sees everything and changes \
    nothing; accepting findings needs the write token. On a loopback address neither is needed. Tokens can also be \
    given in DRIFTLINE_TOKEN and DRIFTLINE_WRITE_TOKEN. See docs/serve.md.")]
pub(crate) struct ServeArgs {
    /// Where to listen. Any address but a loopback one needs a token, or --auth none. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", env = "DRIFTLINE_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// What everything is held against [default: as configured, or `main`].
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// A file that holds the token for reading, and nothing else; at least 16 characters.
    #[arg(long, value_name = "FILE", env = "DRIFTLINE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// The same for accepting findings; whoever has it may read, too.
    #[arg(long, value_name = "FILE", env = "DRIFTLINE_WRITE_TOKEN_FILE")]
    pub write_token_file: Option<PathBuf>,
    /// `none`: whoever reaches the address may do everything (with --read-only: see everything).
    #[arg(long, value_enum, value_name = "HOW", env = "DRIFTLINE_AUTH", default_value = "token")]
    pub auth: Auth,
    /// Nothing can be accepted here, by nobody.
    #[arg(long, env = "DRIFTLINE_READ_ONLY", value_parser = clap::builder::FalseyValueParser::new())]
    pub read_only: bool,
    /// A name by which this server is reached, e.g. through a proxy; repeatable. Addresses and `localhost` always are.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_HOST", value_delimiter = ',')]
    pub host: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Auth {
    Token,
    None,
}
