//! The effective settings of one run: flag, then environment, then file, then default; and where each came from.

use std::path::PathBuf;
use std::sync::Arc;

use clap::parser::ValueSource;
use driftline_core::BaselineName;
use driftline_store::{Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::args::Global;
use crate::config::{self, Config, Rules};
use crate::error::{CommandError, CommandResult};
use crate::output::Printer;
use crate::place::StoreAt;
use crate::surroundings::text_variable;

/// Everything a command needs to know.
#[derive(Debug)]
pub(crate) struct Settings {
    pub store: StoreAt,
    pub store_from: String,
    pub config: Arc<Config>,
    pub printer: Printer,
    pub now: Timestamp,
    pub rules: Rules,
}

pub(crate) const DEFAULT_STORE: &str = ".driftline";
pub(crate) const DEFAULT_BASELINE: &str = "main";
pub(crate) const DEFAULT_STALE_AFTER: SignedDuration = SignedDuration::from_hours(24);
pub(crate) const DEFAULT_KEEP: SignedDuration = SignedDuration::from_hours(24 * 90);
pub(crate) const DEFAULT_KEEP_LAST: usize = 10;
pub(crate) const DEFAULT_GRACE: SignedDuration = SignedDuration::from_hours(24);

impl Settings {
    pub(crate) fn resolve(
        global: &Global,
        sources: impl Fn(&str) -> Option<ValueSource>,
        now: Timestamp,
    ) -> CommandResult<Self> {
        let config = config::load(global.config.as_deref())?;
        let (store, store_from) = match (&global.store, &config.store) {
            (Some(store), _) => {
                let from = match sources("store") {
                    Some(ValueSource::EnvVariable) => "DRIFTLINE_STORE",
                    _ => "--store",
                };
                (store.clone(), from.to_owned())
            }
            (None, Some(store)) => (store.clone(), config_name(&config)),
            (None, None) => (PathBuf::from(DEFAULT_STORE), "default".to_owned()),
        };
        let store = StoreAt::named(&store)?;
        let printer = Printer::new(global)?;
        let rules = config.rules(now);
        Ok(Self { store, store_from, config: Arc::new(config), printer, now, rules })
    }

    /// The same at another moment: rules may have expired since. What is said and printed goes to `ear`, if there is one.
    #[cfg(any(feature = "notify", feature = "mcp", feature = "sql"))]
    pub(crate) fn at(&self, now: Timestamp, ear: Option<Arc<dyn crate::output::Ear>>) -> Self {
        Self {
            store: self.store.clone(),
            store_from: self.store_from.clone(),
            config: self.config.clone(),
            printer: self.printer.heard_by(ear),
            now,
            rules: self.config.rules(now),
        }
    }

    /// The store, which must be there.
    pub(crate) fn open_store(&self) -> CommandResult<Store> {
        Ok(Store::open(self.store.place()?)?)
    }

    /// The store, if there is one yet.
    pub(crate) fn store_if_any(&self) -> CommandResult<Option<Store>> {
        match Store::open(self.store.place()?) {
            Ok(store) => Ok(Some(store)),
            Err(StoreError::NoStore { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The store, made if there is none.
    pub(crate) fn create_store(&self) -> CommandResult<Store> {
        Ok(Store::create(self.store.place()?)?)
    }

    /// The baseline a command speaks of: as given, else as configured, else `main`.
    pub(crate) fn baseline(&self, given: Option<&str>) -> CommandResult<BaselineName> {
        let from_environment = text_variable("DRIFTLINE_BASELINE");
        match given.or(from_environment.as_deref()) {
            Some(name) => name.parse().map_err(|error: driftline_core::NameError| CommandError::new(error.to_string())),
            None => Ok(self
                .config
                .baseline
                .clone()
                .unwrap_or_else(|| DEFAULT_BASELINE.parse().expect("the default is a good name"))),
        }
    }

    /// The same settings at another time, with the configuration file as it is then.
    #[cfg(feature = "web")]
    pub(crate) fn again(&self, now: Timestamp) -> CommandResult<Self> {
        let config = config::load(self.config.path.as_deref())?;
        let rules = config.rules(now);
        let (store, store_from, printer) = (self.store.clone(), self.store_from.clone(), self.printer.clone());
        Ok(Self { store, store_from, config: config.into(), printer, now, rules })
    }

    pub(crate) fn config_name(&self) -> String {
        config_name(&self.config)
    }
}

fn config_name(config: &Config) -> String {
    config.path.as_ref().map_or_else(|| "default".to_owned(), |path| path.display().to_string())
}
