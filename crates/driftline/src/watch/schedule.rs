//! When each source is observed next: a pure function of the times, the intervals and a seed.

use std::time::Duration;

use driftline_notify::retry::fraction;
use jiff::Timestamp;

/// One source, and when it is due.
#[derive(Clone, Debug)]
struct Turn {
    name: String,
    every: Duration,
    /// The most that it may be late on purpose.
    jitter: Duration,
    /// The moment on its own grid; what it is late by does not add up.
    grid: Timestamp,
    due: Timestamp,
    runs: u64,
    running: bool,
}

#[derive(Debug)]
pub(crate) struct Schedule {
    turns: Vec<Turn>,
    seed: u64,
}

impl Schedule {
    /// Everything is due at once: whoever starts it wants to know how things stand.
    pub(crate) fn new(
        sources: impl Iterator<Item = (String, Duration)>,
        jitter: Option<Duration>,
        seed: u64,
        now: Timestamp,
    ) -> Self {
        let turn = |(name, every): (String, Duration)| Turn {
            name,
            every,
            jitter: jitter.unwrap_or(every / 10).min(every),
            grid: now,
            due: now,
            runs: 0,
            running: false,
        };
        Self { turns: sources.map(turn).collect(), seed }
    }

    /// The source that has been due for longest, taken as started.
    pub(crate) fn start(&mut self, now: Timestamp) -> Option<usize> {
        let due = self.turns.iter().enumerate().filter(|(_, turn)| !turn.running && turn.due <= now);
        let (at, _) = due.min_by_key(|(_, turn)| turn.due)?;
        self.turns[at].running = true;
        Some(at)
    }

    /// When the next source that is not running is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.turns.iter().filter(|turn| !turn.running).map(|turn| turn.due).min()
    }

    /// A source that took longer than its interval is not run twice to make up for it.
    pub(crate) fn finished(&mut self, at: usize, now: Timestamp) {
        let seed = self.seed;
        let turn = &mut self.turns[at];
        turn.running = false;
        turn.runs += 1;
        while turn.grid <= now {
            turn.grid = turn.grid.checked_add(turn.every).unwrap_or(Timestamp::MAX);
            if turn.grid == Timestamp::MAX {
                break;
            }
        }
        let late = turn.jitter.mul_f64(fraction(&format!("{seed}\0{}\0{}", turn.name, turn.runs)));
        turn.due = turn.grid.checked_add(late).unwrap_or(Timestamp::MAX);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_750_000_000 + second).unwrap()
    }

    fn schedule(jitter: u64, seed: u64) -> Schedule {
        let sources = [("a".to_owned(), Duration::from_secs(100)), ("b".to_owned(), Duration::from_secs(1000))];
        Schedule::new(sources.into_iter(), Some(Duration::from_secs(jitter)), seed, at(0))
    }

    #[test]
    fn every_source_is_due_at_first_and_then_on_its_own_grid() {
        let mut schedule = schedule(0, 1);
        assert_eq!((schedule.start(at(0)), schedule.start(at(0)), schedule.start(at(0))), (Some(0), Some(1), None));
        assert_eq!(schedule.next(), None);
        schedule.finished(0, at(3));
        assert_eq!(schedule.next(), Some(at(100)));
        assert_eq!(schedule.start(at(99)), None);
        assert_eq!(schedule.start(at(101)), Some(0));
        // It takes three intervals: what was missed is not made up for.
        schedule.finished(0, at(350));
        assert_eq!(schedule.next(), Some(at(400)));
        schedule.finished(1, at(350));
        assert_eq!(schedule.start(at(2000)), Some(0), "due for longest");
    }

    #[test]
    fn jitter_is_within_its_bounds_differs_by_run_and_source_and_follows_from_the_seed() {
        // How late the first source is, run after run.
        let dues = |seed: u64| {
            let one = std::iter::once(("a".to_owned(), Duration::from_secs(100)));
            let mut schedule = Schedule::new(one, Some(Duration::from_secs(50)), seed, at(0));
            let late = |round: i64| {
                let due = schedule.next().unwrap();
                assert_eq!(schedule.start(due), Some(0));
                schedule.finished(0, due);
                schedule.next().unwrap().duration_since(at((round + 1) * 100)).as_secs()
            };
            (0..20).map(late).collect::<Vec<_>>()
        };
        let found = dues(7);
        assert!(found.iter().all(|late| (0..=50).contains(late)), "{found:?}");
        assert!(found.iter().collect::<std::collections::BTreeSet<_>>().len() > 5, "{found:?}");
        assert_eq!(found, dues(7));
        assert_ne!(found, dues(8));
    }
}
