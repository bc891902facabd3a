//! `serve`: the page and its API over a store, given a clock, chance, tokens and the signals that end it.

#[cfg(feature = "web")]
mod answering;
#[cfg(feature = "web")]
mod course;
#[cfg(feature = "web")]
mod graph;
#[cfg(feature = "web")]
mod one;
#[cfg(feature = "web")]
mod snapshot;
#[cfg(feature = "web")]
mod telling;

#[cfg(not(feature = "web"))]
pub(crate) fn run(_: crate::settings::Settings, _: &crate::serve_args::ServeArgs) -> crate::error::CommandResult<()> {
    Err(crate::error::CommandError::new("this driftline was built without the page")
        .hint("build it with the feature `web`, which is on unless --no-default-features is given"))
}

#[cfg(feature = "web")]
pub(crate) use with_web::run;

#[cfg(feature = "web")]
mod with_web {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::Arc;

    use driftline_web::{Access, Options, Stopper, serve, stopper};

    use super::answering::Answering;
    use crate::error::{CommandError, CommandResult};
    use crate::seal::random_bytes;
    use crate::serve_args::{Auth, ServeArgs};
    use crate::settings::Settings;
    use crate::surroundings::{clock, text_variable};

    /// Fewer could be guessed.
    const SHORTEST_TOKEN: usize = 16;

    pub(crate) fn run(settings: Settings, args: &ServeArgs) -> CommandResult<()> {
        let access = access(args)?;
        // A name that is no name is said now, and not on every page.
        settings.baseline(args.baseline.as_deref())?;
        let listener = TcpListener::bind(args.listen).map_err(|error| {
            CommandError::because(format!("cannot listen on {}", args.listen), &error)
                .hint("another program may use it; choose another address with --listen")
        })?;
        let address = listener.local_addr()?;
        let printer = settings.printer.clone();
        if args.auth == Auth::None && is_reached_from_elsewhere(args) {
            let may = if args.read_only { "read" } else { "read and accept" };
            printer.warn(&format!("whoever reaches this address may {may} everything, because of --auth none"));
        }
        let (stop, stopped) = stopper();
        stop_on_signals(stop)?;
        // Whoever starts a server on a free port has to be told which, however quiet it is to be.
        let _ = writeln!(std::io::stderr().lock(), "serving {} on http://{address}/", settings.store);
        let options = Options {
            access,
            hosts: args.host.clone(),
            clock,
            program: concat!("driftline ", env!("CARGO_PKG_VERSION")).to_owned(),
            tell: Arc::new(move |text| printer.warn(text)),
        };
        let answers = Answering::new(settings, args.baseline.clone());
        serve(listener, Arc::new(answers), options, stopped)
            .map_err(|error| CommandError::because("the server ended", &error))
    }

    /// By its address, or through a proxy that knows it by a name.
    fn is_reached_from_elsewhere(args: &ServeArgs) -> bool {
        let local = |host: &String| host.eq_ignore_ascii_case("localhost");
        !args.listen.ip().is_loopback() || !args.host.iter().all(local)
    }

    fn access(args: &ServeArgs) -> CommandResult<Access> {
        let read_token = token("DRIFTLINE_TOKEN", args.token_file.as_deref())?;
        let write_token = token("DRIFTLINE_WRITE_TOKEN", args.write_token_file.as_deref())?;
        let given = read_token.is_some() || write_token.is_some();
        if args.auth == Auth::None && given {
            return Err(CommandError::new("`--auth none` asks nobody for a token, and a token is given")
                .hint("leave out one of the two"));
        }
        if args.auth == Auth::Token && is_reached_from_elsewhere(args) && read_token.is_none() {
            let what = match args.host.first() {
                // A name of its own means that something stands before it that the world can reach.
                Some(host) if args.listen.ip().is_loopback() => format!("`{host}`"),
                _ => args.listen.to_string(),
            };
            return Err(CommandError::new(format!("{what} can be reached from elsewhere, and there is no token"))
                .hint("give a token for reading with --token-file FILE, or in DRIFTLINE_TOKEN")
                .hint("listen on 127.0.0.1 if only this machine needs the page")
                .hint("`--auth none` lets everybody in who reaches the address"));
        }
        if read_token.is_some() && read_token == write_token {
            return Err(CommandError::new("the token for reading is the same as the one for writing")
                .hint("make two: whoever reads should not be able to accept"));
        }
        let secret =
            random_bytes().map_err(|error| CommandError::because("cannot get chance from the system", &error))?;
        Ok(Access { read_token, write_token, read_only: args.read_only, secret })
    }

    /// A token from a file, or from the environment.
    fn token(variable: &str, file: Option<&Path>) -> CommandResult<Option<String>> {
        let (token, from) = match (file, text_variable(variable)) {
            (Some(_), Some(_)) => {
                return Err(CommandError::new(format!("a token is given in a file and in {variable}"))
                    .hint("give it in one of the two"));
            }
            (Some(file), None) => {
                let text = std::fs::read_to_string(file).map_err(|error| {
                    CommandError::because(format!("cannot read the token file `{}`", file.display()), &error)
                })?;
                (text.trim().to_owned(), format!("the token file `{}`", file.display()))
            }
            (None, Some(token)) => (token.trim().to_owned(), variable.to_owned()),
            (None, None) => return Ok(None),
        };
        // The token itself is never part of a message.
        if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CommandError::new(format!(
                "{from} does not hold a token of at least {SHORTEST_TOKEN} letters, digits and signs"
            ))
            .hint("make one: head -c 24 /dev/urandom | base64"));
        }
        Ok(Some(token))
    }

    fn stop_on_signals(stop: Stopper) -> CommandResult<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
            .map_err(|error| CommandError::because("cannot wait for signals", &error))?;
        std::thread::spawn(move || {
            let mut signals = signals.forever();
            if signals.next().is_some() {
                stop.stop();
            }
            // Asked again, it does not wait for anybody.
            if let Some(signal) = signals.next() {
                let code = if signal == SIGINT { crate::exit::INTERRUPTED } else { crate::exit::TERMINATED };
                crate::surroundings::leave(code);
            }
        });
        Ok(())
    }
}
