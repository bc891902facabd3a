//! How much had drifted at each moment of the past: exact, a few dozen moments, and each judged only once.

use std::collections::BTreeMap;
use std::time::Duration;

use driftline_core::StreamId;
use driftline_store::detect::{Question, Tally};
use driftline_store::{Store, Tuning};
use driftline_web::Refusal;
use driftline_web::model::Moment;
use jiff::{SignedDuration, Timestamp};

use super::answering::{Answering, Judged, Open, lock};
use super::telling::failed;
use crate::surroundings::stopwatch;

/// How many moments at most.
const MOMENTS: usize = 40;
/// How long one call may take; what is missing then is judged at the next.
const TIME: Duration = Duration::from_secs(2);

/// What is known of the past, for one baseline under one set of rules.
#[derive(Default)]
pub(super) struct Course {
    of: String,
    /// By stream, version, and how much had been accepted by then.
    tallies: BTreeMap<(StreamId, u64, usize), Tally>,
}

/// The course, and whether it is whole.
pub(super) fn course(answering: &Answering, open: &Open, judged: &Judged) -> Result<(Vec<Moment>, bool), Refusal> {
    let started = stopwatch();
    let baseline = open.store.catalog().baseline(&judged.name).map_err(failed)?;
    let rules = open.revision.rsplit('-').next().unwrap_or_default();
    let of = format!("{} {} {:?} {rules}", judged.name, baseline.set_at, baseline.pins);
    let mut known = lock(&answering.course);
    if known.of != of {
        *known = Course { of, ..Course::default() };
    }
    // Judging the past must not fill the store with views that nobody asks for again.
    let store = open.settings.open_store().map_err(failed)?;
    let store = store.with_tuning(Tuning { view_rows: usize::MAX, ..Tuning::default() });
    let mut moments = Vec::new();
    let mut whole = true;
    // The newest first: they are looked at most.
    for at in moments_of(&open.store).into_iter().rev() {
        let question = store.question(&judged.name, Some(at)).map_err(failed)?;
        let mut sum = Tally::default();
        let mut missing = false;
        for pair in &question.pairs {
            let accepted = question.accepted.iter().filter(|one| one.stream == pair.stream).count();
            let key = (pair.stream.clone(), pair.live, accepted);
            let tally = match known.tallies.get(&key) {
                Some(tally) => *tally,
                None if started.elapsed() > TIME => {
                    missing = true;
                    break;
                }
                None => {
                    let tally = match pair.expected {
                        None => {
                            let rows = store.catalog().version(&pair.stream, pair.live).map_err(failed)?.rows;
                            Tally { not_checked: rows, ..Tally::default() }
                        }
                        Some(_) => {
                            let alone = Question { pairs: vec![pair.clone()], accepted: question.accepted.clone() };
                            store.drift(&alone, &open.settings.rules.book).map_err(failed)?.tally()
                        }
                    };
                    known.tallies.insert(key, tally);
                    tally
                }
            };
            sum.in_sync += tally.in_sync;
            sum.drifted += tally.drifted;
            sum.unknown += tally.unknown;
            sum.not_checked += tally.not_checked;
        }
        if missing {
            whole = false;
            break;
        }
        moments.push(Moment {
            at,
            total: sum.total(),
            drifted: sum.drifted,
            unknown: sum.unknown,
            not_checked: sum.not_checked,
        });
    }
    moments.reverse();
    Ok((moments, whole))
}

/// The moments at which something was observed; where there are too many, the last of each stretch of time.
fn moments_of(store: &Store) -> Vec<Timestamp> {
    let mut all: Vec<Timestamp> =
        store.catalog().streams().flat_map(|(_, stream)| stream.versions().map(|version| version.taken_at)).collect();
    all.sort_unstable();
    all.dedup();
    thin(&all, MOMENTS)
}

/// At most so many of them. Stretches begin at fixed times, so that a new moment leaves the old ones as they are.
fn thin(all: &[Timestamp], most: usize) -> Vec<Timestamp> {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Vec::new() };
    if all.len() <= most {
        return all.to_vec();
    }
    let span = last.duration_since(*first);
    let mut stretch = SignedDuration::from_mins(1);
    while span.as_secs() / stretch.as_secs() + 2 > i64::try_from(most).unwrap_or(i64::MAX) {
        stretch *= 2;
    }
    let number = |at: &Timestamp| at.as_second().div_euclid(stretch.as_secs());
    all.chunk_by(|a, b| number(a) == number(b)).filter_map(|chunk| chunk.last().copied()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn many_moments_are_thinned_and_a_new_one_leaves_the_old_ones() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let all: Vec<Timestamp> = (0..2_000).map(|hour| start + SignedDuration::from_hours(hour)).collect();
        let thinned = thin(&all[..1_999], MOMENTS);
        assert!((MOMENTS / 3..=MOMENTS).contains(&thinned.len()), "{}", thinned.len());
        assert_eq!(thinned.last(), all[..1_999].last());
        let later = thin(&all, MOMENTS);
        assert_eq!(later.last(), all.last());
        assert!(later.iter().filter(|at| !thinned.contains(at)).count() <= 1);
        assert_eq!(thin(&all[..7], MOMENTS), all[..7]);
        assert!(thin(&[], MOMENTS).is_empty());
    }
}
