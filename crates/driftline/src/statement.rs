//! Drift as one plain SQL statement over the table `history`, for engines that read the store in place.
//!
//! What is small is written into the statement: which versions are compared, what they looked at, what was accepted,
//! and the rules. What is large stays where it is. The statement says what `drift` says, or `undecided` with a reason;
//! it never guesses. `docs/engines.md` tells what is exact.

pub(crate) mod dialect;
mod facts;
mod rules;

use driftline_core::rule::RuleBook;
use driftline_store::Store;
use driftline_store::detect::Question;

use crate::error::{CommandError, CommandResult};
use crate::report::Expected;
use dialect::{BETWEEN_CHANGES, BETWEEN_PARTS, Dialect};
use facts::Facts;

/// The columns that name a resource.
const KEY: &str = "stream, type, place, id";

/// How deep the elements of an array without an order may nest.
const DEPTH: usize = 4;

/// Up to so many elements of such an array are paired in the best way, and longer ones in sorted order.
const LONGEST: usize = 64;

const GAP: &str = "it was gone and came back with other properties";
const NESTED: &str = "several versions changed it at different depths";
const WHOLE: &str = "several versions replaced it by something of the same kind";
const UNCLEAR: &str = "the two sides of a change cannot be told apart in its text";
const UNKNOWN: &str = "one side has a value that could not be resolved";
const SORTED: &str = "an array whose order does not count lies in one whose order does";
const DEEP: &str = "the elements of an array whose order does not count nest too deep";
const INSIDE: &str = "a rule has a say in the elements of an array whose order does not count";
const UNTOLD: &str = "what differs is not told";

/// The statement that answers a question under a rule book.
pub(crate) fn print(
    store: &Store,
    question: &Question,
    expected: &Expected,
    book: &RuleBook,
    dialect: Dialect,
) -> CommandResult<String> {
    let facts = facts::collect(store, question, book, dialect)?;
    let mut text = heading(&facts, expected, dialect);
    text += "WITH\n";
    text += &facts.tables(dialect);
    text += &net(&facts, dialect);
    text += &differences(book, dialect);
    text += &verdicts(book, dialect);
    if text.contains('\0') {
        return Err(CommandError::new("a name in the store has the character U+0000, which SQL cannot write")
            .hint("`driftline drift` answers without SQL"));
    }
    Ok(text)
}

fn heading(facts: &Facts, expected: &Expected, dialect: Dialect) -> String {
    format!(
        "-- Drift {} of {} in the table `history`, as SQL for {}.\n\
         -- Printed by `driftline drift --print-sql {}`, driftline {}. It holds for the versions named in it: print it\n\
         -- anew after an observation, a change of the baseline or of the rules. docs/engines.md explains it.\n",
        expected.exact_heading(),
        crate::output::count(facts.pairs.len(), "source"),
        dialect.engine(),
        dialect.name(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// How each extent was listed in which something is missing: the nearest word holds, and of two the worse.
const LOOKED: &str = "extents AS (
  SELECT DISTINCT stream, type, place FROM held WHERE was_hash IS NULL OR is_hash IS NULL
),
looked AS (
  SELECT k.stream, k.type, k.place, c.side, coalesce(
    min(CASE WHEN c.type = k.type AND c.place = k.place THEN c.complete END),
    min(CASE WHEN c.type = k.type OR c.place = k.place THEN c.complete END),
    min(c.complete)) AS complete
  FROM extents k JOIN coverage c
    ON c.stream = k.stream AND (c.type = k.type OR c.type = '*') AND (c.place = k.place OR c.place = '*')
  GROUP BY k.stream, k.type, k.place, c.side
),
";

fn same_key(left: &str, right: &str) -> String {
    ["stream", "type", "place", "id"].map(|column| format!("{left}.{column} = {right}.{column}")).join(" AND ")
}

/// What became of each resource between the two versions.
fn net(facts: &Facts, dialect: Dialect) -> String {
    let (low, high) = facts.bounds();
    let (before, after) = (dialect.hex("h.prev_hash"), dialect.hex("h.hash"));
    let mut text = format!(
        "changed AS (
  SELECT h.stream, p.source, p.other_basis, p.reversed, p.live_at, h.type, h.place, h.id, h.observed_at, h.changes, h.arrays,
    CASE WHEN p.reversed = 1 THEN -h.version ELSE h.version END AS step,
    CASE WHEN p.reversed = 1 THEN {after} ELSE {before} END AS was_hash,
    CASE WHEN p.reversed = 1 THEN {before} ELSE {after} END AS is_hash,
    CASE WHEN p.reversed = 1 THEN h.seen ELSE h.prev_seen END AS was_seen,
    CASE WHEN p.reversed = 1 THEN h.prev_seen ELSE h.seen END AS is_seen
  FROM history h JOIN pairs p ON h.stream = p.stream
  WHERE h.op <> 'base' AND h.version > {low} AND h.version <= {high} AND h.version > p.low AND h.version <= p.high
),
begun AS (
  SELECT *, first_value(coalesce(was_hash || CASE WHEN was_seen THEN '+' ELSE '-' END, 'absent'))
    OVER (PARTITION BY {KEY} ORDER BY step) AS origin
  FROM changed
),
-- Where a resource was back to what it had been, nothing has happened to it so far.
returned AS (
  SELECT *, max(CASE WHEN coalesce(is_hash || CASE WHEN is_seen THEN '+' ELSE '-' END, 'absent') = origin THEN step END)
    OVER (PARTITION BY {KEY}) AS back
  FROM begun
),
happened AS (
  SELECT *, row_number() OVER (PARTITION BY {KEY} ORDER BY step) AS nth,
    row_number() OVER (PARTITION BY {KEY} ORDER BY step DESC) AS nth_last
  FROM returned WHERE back IS NULL OR step > back
),
net AS (
  SELECT {KEY}, source, other_basis,
    max(CASE WHEN nth = 1 THEN was_hash END) AS was_hash,
    max(CASE WHEN nth = 1 AND was_seen THEN 1 ELSE 0 END) AS was_seen,
    max(CASE WHEN nth_last = 1 THEN is_hash END) AS is_hash,
    max(CASE WHEN nth_last = 1 AND is_seen THEN 1 ELSE 0 END) AS is_seen,
    max(CASE WHEN nth = 1 THEN CASE WHEN reversed = 1 THEN live_at ELSE observed_at END END) AS since
  FROM happened GROUP BY {KEY}, source, other_basis
),
"
    );
    text += &match facts.wants_state() {
        true => format!(
            "-- Every resource that a version has, where that must be known.
state AS (
  SELECT {KEY}, wants, seen FROM (
    SELECT h.stream, h.type, h.place, h.id, p.wants, h.hash, h.seen,
      row_number() OVER (PARTITION BY h.stream, h.type, h.place, h.id ORDER BY h.version DESC) AS nth_last
    FROM history h JOIN pairs p ON h.stream = p.stream
    WHERE p.wants <> 'nothing' AND ((h.op = 'base' AND h.version = p.image)
      OR (h.op <> 'base' AND h.version > p.image AND h.version <= p.live))
  ) ordered WHERE nth_last = 1 AND hash IS NOT NULL
),
"
        ),
        false => {
            let text = dialect.text_type();
            let null = format!("CAST(NULL AS {text})");
            format!(
                "state AS (\n  SELECT {null} AS stream, {null} AS type, {null} AS place, {null} AS id, {null} AS wants, \
                 true AS seen WHERE false\n),\n"
            )
        }
    };
    text += &format!(
        "unseen AS (
  SELECT s.stream, s.type, s.place, s.id FROM state s LEFT JOIN net n ON {}
  WHERE s.wants = 'unseen' AND NOT s.seen AND n.id IS NULL
),
-- What was accepted is expected in place of what the baseline has.
held AS (
  SELECT n.stream, n.type, n.place, n.id, n.source, n.other_basis, n.is_hash, n.is_seen, n.since,
    CASE WHEN a.id IS NULL THEN n.was_hash ELSE a.was_hash END AS was_hash,
    CASE WHEN a.id IS NULL THEN n.was_seen ELSE 1 END AS was_seen,
    coalesce(a.resolves, 0) AS resolves
  FROM net n LEFT JOIN accepted a ON {}
  UNION ALL
  SELECT a.stream, a.type, a.place, a.id, a.source, a.other_basis, a.is_hash, 1, a.live_at, a.was_hash, 1, a.resolves
  FROM accepted a LEFT JOIN net n ON {} LEFT JOIN unseen u ON {}
  WHERE n.id IS NULL AND u.id IS NULL
),
",
        same_key("s", "n"),
        same_key("n", "a"),
        same_key("a", "n"),
        same_key("a", "u"),
    );
    text
}

/// Every place that differs, and whether a rule excuses it.
fn differences(book: &RuleBook, dialect: Dialect) -> String {
    let marker = format!("\\{{\"path\":{},\"op\":\"(add|remove|replace)\"", dialect.json_text_inside());
    let pieces = |column: &str| {
        let parts = [BETWEEN_CHANGES, "{1}", BETWEEN_PARTS, "{2}", BETWEEN_PARTS];
        let marked = dialect.replace(column, &marker, &parts);
        dialect.explode(&dialect.split(&marked, BETWEEN_CHANGES))
    };
    let element = |from: &str| {
        format!(
            "SELECT {KEY}, source, step, reversed, split_part(piece, {BETWEEN_PARTS}, 1) AS path,
    split_part(piece, {BETWEEN_PARTS}, 2) AS op,
    substr(split_part(piece, {BETWEEN_PARTS}, 3), 1, length(split_part(piece, {BETWEEN_PARTS}, 3)) - 2) AS rest
  FROM {from} WHERE position({BETWEEN_PARTS} IN piece) > 0"
        )
    };
    let unknown = match rules::excuses_unknown(dialect, book) {
        Some(condition) => {
            format!("CASE WHEN ({condition}) AND position('$unknown' IN path || rest) > 0 THEN 1 ELSE 0 END")
        }
        None => "0".to_owned(),
    };
    format!(
        "-- What is there on both sides and not the same: the changes as they are told in the rows, one a row.
-- Where a version in between has just what was accepted, only what came after it counts.
restarts AS (
  SELECT h.stream, h.type, h.place, h.id, max(h.step) AS restart
  FROM changed h JOIN accepted a ON {same_restart} AND h.is_hash = a.was_hash
  GROUP BY h.stream, h.type, h.place, h.id
),
told AS (
  SELECT h.stream, h.type, h.place, h.id, h.source, h.step, h.reversed, h.changes, h.arrays,
    CASE WHEN h.was_hash IS NULL OR h.is_hash IS NULL THEN 1 ELSE 0 END AS gap
  FROM returned h JOIN held e ON {same} LEFT JOIN restarts r ON {same_again}
  WHERE {compared} AND (h.step > r.restart OR (r.restart IS NULL AND (h.back IS NULL OR h.step > h.back)))
  UNION ALL
  SELECT a.stream, a.type, a.place, a.id, a.source, -4611686018427387904, 0, a.changes, a.arrays,
    CASE WHEN a.is_hash IS NULL THEN 1 ELSE 0 END
  FROM accepted a JOIN held e ON {same_accepted} LEFT JOIN restarts r ON {same_accepted_again}
  WHERE {compared} AND r.restart IS NULL
),
leaf_pieces AS (SELECT {KEY}, source, step, reversed, {leaves} AS piece FROM told WHERE changes IS NOT NULL),
list_pieces AS (SELECT {KEY}, source, step, reversed, {lists} AS piece FROM told WHERE arrays IS NOT NULL),
leaves AS (
  {leaf}
),
lists AS (
  {list}
),
ordered_lists AS (
  SELECT *, CASE WHEN {is_unordered} THEN 1 ELSE 0 END AS bag FROM lists
),
-- An array without an order is taken whole; of all others, what differs inside of them.
elements AS (
  SELECT l.stream, l.type, l.place, l.id, l.source, l.step, l.reversed, l.path, l.op, l.rest, 0 AS bag,
    CASE WHEN a.path IS NULL THEN 0 ELSE 1 END AS listed
  FROM leaves l LEFT JOIN ordered_lists a
    ON {same_list} AND l.step = a.step AND substr(l.path, 1, length(a.path) + 1) = a.path || '/'
  WHERE a.bag IS NULL OR a.bag = 0
  UNION ALL
  SELECT stream, type, place, id, source, step, reversed, path, op, rest, 1, 0 FROM ordered_lists WHERE bag = 1
),
cut AS (
  SELECT *, {unknown} AS unknown, position(',\"current\":' IN rest) AS cut,
    CASE WHEN op <> 'replace' OR substr(rest, 13, 1) NOT IN ('{{', '[')
      OR length(rest) - length(replace(rest, ',\"current\":', '')) = 11 THEN 1 ELSE 0 END AS clear
  FROM elements
),
valued AS (
  SELECT *,
    CASE WHEN op = 'remove' THEN substr(rest, 13)
      WHEN op = 'replace' AND clear = 1 THEN substr(rest, 13, cut - 13) END AS baseline_value,
    CASE WHEN op = 'add' THEN substr(rest, 12)
      WHEN op = 'replace' AND clear = 1 THEN substr(rest, cut + 11) END AS current_value
  FROM cut
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY {KEY}, path ORDER BY step) AS nth,
    row_number() OVER (PARTITION BY {KEY}, path ORDER BY step DESC) AS nth_last
  FROM valued
),
-- Several changes of one place are one: from the first value to the last.
folded AS (
  SELECT {KEY}, source, path, max(bag) AS bag, max(listed) AS listed, max(unknown) AS unknown, min(clear) AS clear,
    count(*) AS times,
    max(CASE WHEN nth = 1 THEN CASE WHEN reversed = 1 THEN current_value ELSE baseline_value END END) AS was_value,
    max(CASE WHEN nth_last = 1 THEN CASE WHEN reversed = 1 THEN baseline_value ELSE current_value END END) AS is_value
  FROM placed GROUP BY {KEY}, source, path
),
nested AS (
  SELECT DISTINCT e.stream, e.type, e.place, e.id, e.path FROM folded e JOIN folded f ON {same_folded}
  WHERE substr(f.path, 1, length(e.path) + 1) = e.path || '/' OR substr(e.path, 1, length(f.path) + 1) = f.path || '/'
),
differing AS (
  SELECT f.*, CASE WHEN n.path IS NULL THEN 0 ELSE 1 END AS nested,
    CASE WHEN f.bag = 1 AND substr(f.was_value, 1, 1) = '[' AND substr(f.is_value, 1, 1) = '[' THEN 1 ELSE 0 END AS both_lists
  FROM folded f LEFT JOIN nested n ON {same_nested} AND f.path = n.path
  WHERE n.path IS NOT NULL OR f.clear = 0 OR f.was_value IS DISTINCT FROM f.is_value
),
",
        same = same_key("h", "e"),
        same_restart = same_key("h", "a"),
        same_again = same_key("h", "r"),
        same_accepted_again = same_key("a", "r"),
        same_accepted = same_key("a", "e"),
        same_list = same_key("l", "a"),
        same_folded = same_key("e", "f"),
        same_nested = same_key("f", "n"),
        compared = "e.was_hash <> e.is_hash AND e.was_seen = 1 AND e.is_seen = 1",
        leaves = pieces("changes"),
        lists = pieces("arrays"),
        leaf = element("leaf_pieces"),
        list = element("list_pieces"),
        is_unordered = rules::is_unordered(dialect, book),
    )
}

/// The answer.
fn verdicts(book: &RuleBook, dialect: Dialect) -> String {
    let undecided = |reason: &str| dialect.text(&format!("undecided: {reason}"));
    let composite = |value: &str| format!("substr({value}, 1, 1) IN ('{{', '[')");
    let sealed = |value: &str| dialect.matches(value, "\\A\\{\"\\$sealed\":\"[^\"]*\"\\}\\z");
    let sorted = |value: &str| {
        let element =
            format!("({}|[^\",\\[\\]{{}}]+|{})(?:,|\\z)", dialect.json_text(), dialect.json_nested(DEPTH - 1));
        let inside = format!("substr({value}, 2, length({value}) - 2)");
        let marked = dialect.replace(&inside, &element, &["{1}", BETWEEN_CHANGES]);
        dialect.sorted(&dialect.split(&marked, BETWEEN_CHANGES))
    };
    let masked = |value: &str| {
        let member = |before: &str, after: &str| {
            let value = format!("\":(?:{}|[^\",\\[\\]{{}}]+){after}", dialect.json_text());
            (dialect.text(&format!("{before}\"(?:")), dialect.text(&format!("){value}")))
        };
        let once = dialect.replace_by(value, member(",", ""), "masked");
        let twice = dialect.replace_by(&once, member("", ",?"), "masked");
        format!("CASE WHEN masked <> '' THEN {twice} ELSE '' END")
    };
    let flat = |value: &str| dialect.matches(value, &format!("\\A{}\\z", dialect.json_nested(2)));
    let long =
        |sorted: &str| format!("length({sorted}) - length(replace({sorted}, {BETWEEN_CHANGES}, '')) > {LONGEST}");
    let shallow = |value: &str| dialect.matches(value, &format!("\\A{}\\z", dialect.json_nested(DEPTH)));
    format!(
        "masks AS (
  SELECT *, CASE WHEN both_lists = 1 THEN {masked} ELSE '' END AS masked FROM differing
),
-- Of arrays without an order: their elements without the members that do not count.
masked_lists AS (
  SELECT *, {masked_was} AS masked_was, {masked_is} AS masked_is,
    CASE WHEN both_lists = 1 THEN {sorted_was} END AS was_sorted,
    CASE WHEN both_lists = 1 THEN {sorted_is} END AS is_sorted
  FROM masks
),
judged AS (
  SELECT *, CASE
    WHEN nested = 1 THEN {nested}
    WHEN listed = 1 AND ({in_unordered}) THEN {sorted_inside}
    WHEN both_lists = 1 AND ({ignored}) AND NOT ({resolves_within}) THEN 'excused'
    WHEN both_lists = 1 AND NOT (({shallow_was}) AND ({shallow_is})) THEN {deep}
    WHEN both_lists = 1 AND was_sorted = is_sorted THEN 'excused'
    WHEN both_lists = 1 AND (({reaches_array}) OR ({sorts_within})) THEN {inside}
    WHEN both_lists = 1 AND masked <> '' AND (NOT (({flat_was}) AND ({flat_is}))
      OR position('{{}}' IN masked_was || masked_is) > 0) THEN {inside}
    WHEN both_lists = 1 AND masked <> '' AND {sorted_masked_was}
      = {sorted_masked_is}
      -- Longer ones are paired in another way.
      THEN CASE WHEN {long} THEN {inside} ELSE 'excused' END
    WHEN both_lists = 1 THEN 'counts'
    WHEN times > 1 AND clear = 1 AND {composite_was} AND substr(was_value, 1, 1) = substr(is_value, 1, 1)
      AND NOT ({sealed_was}) AND NOT ({sealed_is}) THEN {whole}
{explaining}    WHEN clear = 0 THEN {unclear}
    WHEN (was_value IS NULL OR is_value IS NULL) AND {composite_one} AND NOT ({sealed_one})
      AND ({reaches_one}) THEN {beneath}
    ELSE 'counts' END AS said
  FROM masked_lists
),
compared AS (
  SELECT {KEY}, max(unknown) AS unknown,
    max(CASE WHEN said = 'counts' THEN 1 ELSE 0 END) AS counts,
    max(CASE WHEN said = 'resolved' THEN 1 ELSE 0 END) AS resolved,
    min(CASE WHEN said LIKE 'undecided%' THEN said END) AS undecided
  FROM judged GROUP BY {KEY}
),
gaps AS (SELECT {KEY}, max(gap) AS gap FROM told GROUP BY {KEY}),
{looked}answered AS (
  SELECT e.stream, e.type, e.place, e.id, e.since, CASE
    WHEN e.is_hash IS NOT NULL AND e.is_seen = 0 THEN 'not_checked'
    WHEN e.was_hash IS NOT NULL AND e.was_seen = 0 THEN 'not_checked'
    WHEN e.was_hash IS NULL AND coalesce(x.complete, 0) = 0 THEN 'not_checked'
    WHEN e.is_hash IS NULL AND coalesce(l.complete, 0) = 0 THEN 'not_checked'
    WHEN e.was_hash IS NULL AND e.is_hash IS NULL THEN 'nothing'
    WHEN (e.was_hash IS NULL OR e.is_hash IS NULL) AND e.other_basis = 1 THEN 'not_checked'
    WHEN e.was_hash IS NULL AND e.ignored = 1 THEN 'excused'
    WHEN e.was_hash IS NULL THEN 'unknown'
    WHEN e.is_hash IS NULL AND e.resolves = 1 THEN 'resolved'
    WHEN e.is_hash IS NULL THEN 'deleted'
    WHEN e.was_hash = e.is_hash THEN 'nothing'
    WHEN g.gap = 1 THEN {gap}
    WHEN c.unknown = 1 THEN {unknown}
    WHEN c.counts = 1 AND e.other_basis = 1 THEN 'not_checked'
    WHEN c.counts = 1 THEN 'modified'
    WHEN c.undecided IS NOT NULL THEN c.undecided
    WHEN c.id IS NULL THEN {untold}
    WHEN c.resolved = 1 THEN 'resolved'
    ELSE 'excused' END AS said
  FROM (
    SELECT {KEY}, source, other_basis, was_hash, was_seen, is_hash, is_seen, since,
      CASE WHEN {ignored_whole} THEN 1 ELSE 0 END AS ignored,
      CASE WHEN resolves = 1 OR ({resolved}) THEN 1 ELSE 0 END AS resolves
    FROM held
  ) e
  LEFT JOIN looked x ON x.side = 'expected' AND {place_x}
  LEFT JOIN looked l ON l.side = 'live' AND {place_l}
  LEFT JOIN gaps g ON {same_gap}
  LEFT JOIN compared c ON {same_compared}
  UNION ALL
  SELECT {KEY}, CAST(NULL AS {moment_type}), 'not_checked' FROM unseen
  UNION ALL
  SELECT {KEY}, CAST(NULL AS {moment_type}), 'not_checked' FROM state WHERE wants = 'all'
)
SELECT stream, type, place, id,
  CASE WHEN split_part(place, '/', 1) = 'aws' THEN nullif(nullif(split_part(place, '/', 2), '-'), '') END AS account,
  CASE WHEN split_part(place, '/', 1) = 'aws' THEN nullif(nullif(split_part(place, '/', 3), 'global'), '') END AS region,
  CASE WHEN said IN ('modified', 'deleted') THEN 'drifted'
    WHEN said IN ('excused', 'resolved') THEN 'in_sync'
    WHEN said LIKE 'undecided%' THEN 'undecided'
    ELSE said END AS status,
  CASE WHEN said IN ('modified', 'deleted', 'resolved') THEN said END AS kind,
  CASE WHEN said IN ('modified', 'deleted', 'unknown') OR said LIKE 'undecided%' THEN since END AS since,
  CASE WHEN said LIKE 'undecided%' THEN substr(said, 12) END AS reason
FROM answered WHERE said <> 'nothing'
ORDER BY type, place, id, stream
",
        looked = LOOKED,
        gap = undecided(GAP),
        unknown = undecided(UNKNOWN),
        untold = undecided(UNTOLD),
        ignored_whole = rules::ignored_whole(dialect, book),
        resolved = rules::resolved_whole(dialect, book),
        place_x = "x.stream = e.stream AND x.type = e.type AND x.place = e.place",
        place_l = "l.stream = e.stream AND l.type = e.type AND l.place = e.place",
        same_gap = same_key("g", "e"),
        same_compared = same_key("c", "e"),
        moment_type = dialect.moment_type(),
        nested = undecided(NESTED),
        in_unordered = rules::in_unordered(dialect, book),
        sorted_inside = undecided(SORTED),
        ignored = rules::ignored(dialect, book),
        resolves_within = rules::resolves_within(dialect, book),
        shallow_was = shallow("was_value"),
        shallow_is = shallow("is_value"),
        deep = undecided(DEEP),
        sorted_was = sorted("was_value"),
        sorted_is = sorted("is_value"),
        reaches_array = rules::reaches_into(dialect, book, "(was_value || is_value)", true),
        masked = rules::masked_members(dialect, book),
        masked_was = masked("was_value"),
        masked_is = masked("is_value"),
        flat_was = flat("was_value"),
        flat_is = flat("is_value"),
        sorted_masked_was = sorted("masked_was"),
        sorted_masked_is = sorted("masked_is"),
        long = format!("{} OR {}", long("was_sorted"), long("is_sorted")),
        sorts_within = rules::sorts_within(dialect, book),
        inside = undecided(INSIDE),
        composite_was = composite("was_value"),
        sealed_was = sealed("was_value"),
        sealed_is = sealed("is_value"),
        whole = undecided(WHOLE),
        explaining = rules::explaining(dialect, book),
        unclear = undecided(UNCLEAR),
        composite_one = composite("coalesce(was_value, is_value)"),
        sealed_one = sealed("coalesce(was_value, is_value)"),
        reaches_one = rules::reaches_into(dialect, book, "coalesce(was_value, is_value)", false),
        beneath = undecided(rules::BENEATH),
    )
}
