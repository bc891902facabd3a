//! `watch`: observes on schedules, compares, and tells people what changed since they were last told.

#[cfg_attr(
    not(feature = "notify"),
    expect(dead_code, reason = "the configuration is checked in every build; only watching acts on it")
)]
pub(crate) mod plan;

#[cfg(feature = "notify")]
mod channels;
#[cfg(feature = "notify")]
mod keep;
#[cfg(feature = "notify")]
mod log;
#[cfg(feature = "notify")]
mod look;
#[cfg(feature = "notify")]
mod run;
#[cfg(feature = "notify")]
mod schedule;
#[cfg(feature = "notify")]
mod transitions;
#[cfg(all(test, feature = "notify"))]
mod transitions_tests;

#[cfg(feature = "notify")]
pub(crate) use run::run;

#[cfg(not(feature = "notify"))]
pub(crate) fn run(_: &crate::settings::Settings, _: &crate::args::WatchArgs) -> crate::error::CommandResult<u8> {
    Err(crate::error::CommandError::new("this driftline was built without watching and telling")
        .hint("build it with the feature `notify`, which is on unless --no-default-features is given"))
}
