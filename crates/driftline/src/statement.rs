//! Drift as one plain SQL statement over the table `history`, for engines that read the store in place.
//!
//! What is small is written into the statement: which versions are compared, what they looked at, what was accepted,
//! and the rules. What is large stays where it is. The statement says what `drift` says, or `undecided` with a reason;
//! it never guesses. `docs/engines.md` tells what is exact.
//!
//! Each step reads the one before it and nothing else: engines put such a step into every place that names it, and a
//! step that is named twice is computed twice.

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

/// What is known of a resource as a whole, in every row of it.
const KNOWN: &str = "source, other_basis, wants, was_hash, was_seen, is_hash, is_seen, accepted, net, resolves, gap, \
     touchable, resolvable, since, live_mark";

/// How deep the elements of an array without an order may nest.
const DEPTH: usize = 4;

/// Up to so many elements of such an array are paired in the best way, and longer ones in sorted order.
const LONGEST: usize = 64;

const GAP: &str = "it was gone and came back with other properties";
const NESTED: &str = "several versions changed it at different depths";
const WHOLE: &str = "several versions replaced it by something of the same kind";
const UNCLEAR: &str = "the two sides of a change cannot be told apart in its text";
/// What a row tells of a resource, before and after.
const IMAGES: &str = "(coalesce(h.before, '') || coalesce(h.after, ''))";
const GONE: &str = "it is gone, and what it was tells whether that is good news";
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
    text += &resources(&facts, book, dialect);
    text += &differences(book, dialect);
    text += &judged(book, dialect);
    text += &answer(book, dialect);
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

/// Every row that matters, and in each what is known of its resource: what it was, what it is, what happened between.
fn resources(facts: &Facts, book: &RuleBook, dialect: Dialect) -> String {
    let (low, high) = facts.bounds();
    let (before, after) = (dialect.hex("h.prev_hash"), dialect.hex("h.hash"));
    let (text, moment) = (dialect.text_type(), dialect.moment_type());
    let state =
        |hash: &str, seen: &str| format!("coalesce({hash} || CASE WHEN {seen} THEN '+' ELSE '-' END, 'absent')");
    let no_text = format!("CAST(NULL AS {text})");
    // Only asked for where it must be known what a version has beyond what changed.
    let whole = match facts.wants_state() {
        false => String::new(),
        true => format!(
            "  UNION ALL
  -- The live version as a whole: its full image, and the changes since.
  SELECT h.stream, h.type, h.place, h.id, p.source, p.other_basis, p.wants, 'state', CAST(NULL AS BIGINT), 0, p.live_at,
    CAST(NULL AS {moment}), {no_text}, {no_text}, {no_text}, {no_text}, 0, {no_text}, {no_text}, 0, 0,
    lpad(CAST(h.version AS {text}), 20, '0') || CASE WHEN h.hash IS NULL THEN 'a' WHEN h.seen THEN 's' ELSE 'u' END
  FROM history h JOIN pairs p ON h.stream = p.stream
  WHERE p.wants <> 'nothing' AND ((h.op = 'base' AND h.version = p.image)
    OR (h.op <> 'base' AND h.version > p.image AND h.version <= p.live))
"
        ),
    };
    format!(
        "-- The changes between the two versions, and what was accepted as a change before them.
happened AS (
  SELECT h.stream, h.type, h.place, h.id, p.source, p.other_basis, p.wants, 'change' AS what,
    CASE WHEN p.reversed = 1 THEN -h.version ELSE h.version END AS step, p.reversed, p.live_at, h.observed_at,
    CASE WHEN p.reversed = 1 THEN {was_reversed} ELSE {was} END AS was,
    CASE WHEN p.reversed = 1 THEN {now_reversed} ELSE {now} END AS now,
    {no_text} AS expected_hash, {no_text} AS pinned_hash, 0 AS resolves, h.changes, h.arrays,
    CASE WHEN {touchable} THEN 1 ELSE 0 END AS touchable, CASE WHEN {resolvable} THEN 1 ELSE 0 END AS resolvable,
    {no_text} AS mark
  FROM history h JOIN pairs p ON h.stream = p.stream
  WHERE h.op <> 'base' AND h.version > {low} AND h.version <= {high} AND h.version > p.low AND h.version <= p.high
  UNION ALL
  SELECT stream, type, place, id, source, other_basis, wants, 'accepted', -4611686018427387904, 0, live_at,
    CAST(NULL AS {moment}), {no_text}, {no_text}, was_hash, is_hash, resolves, changes, arrays, 1, 0, {no_text}
  FROM accepted
{whole}),
begun AS (
  SELECT *,
    first_value(was) OVER (PARTITION BY {KEY} ORDER BY CASE WHEN what = 'change' THEN 0 ELSE 1 END, step) AS origin,
    first_value(now) OVER (PARTITION BY {KEY} ORDER BY CASE WHEN what = 'change' THEN 0 ELSE 1 END, step DESC) AS last_state,
    max(CASE WHEN what = 'accepted' THEN 1 ELSE 0 END) OVER (PARTITION BY {KEY}) AS accepted,
    max(expected_hash) OVER (PARTITION BY {KEY}) AS accepted_hash,
    max(mark) OVER (PARTITION BY {KEY}) AS live_mark
  FROM happened
),
-- Where a resource was back to what it had been, nothing has happened to it so far. Where it was just what was
-- accepted, only what came after that counts.
returned AS (
  SELECT *,
    max(CASE WHEN now = origin THEN step END) OVER (PARTITION BY {KEY}) AS back,
    max(CASE WHEN substr(now, 1, 32) = accepted_hash THEN step END) OVER (PARTITION BY {KEY}) AS restart
  FROM begun
),
counted AS (
  SELECT *,
    CASE WHEN what = 'change' AND (back IS NULL OR step > back) THEN 1 ELSE 0 END AS lasting,
    CASE WHEN what = 'accepted' AND restart IS NULL THEN 1
      WHEN what = 'change' AND restart IS NOT NULL AND step > restart THEN 1
      WHEN what = 'change' AND restart IS NULL AND (back IS NULL OR step > back) THEN 1
      ELSE 0 END AS counts,
    CASE WHEN origin IS NULL OR origin = last_state THEN 0 ELSE 1 END AS net
  FROM returned
),
known AS (
  SELECT {KEY}, source, other_basis, wants, step, reversed, counts, changes, arrays, accepted, net,
    CASE WHEN accepted = 1 THEN accepted_hash WHEN origin <> 'absent' THEN substr(origin, 1, 32) END AS was_hash,
    CASE WHEN accepted = 1 OR substr(origin, 33) = '+' THEN 1 ELSE 0 END AS was_seen,
    CASE WHEN net = 1 AND last_state <> 'absent' THEN substr(last_state, 1, 32)
      WHEN net = 0 THEN max(pinned_hash) OVER (PARTITION BY {KEY}) END AS is_hash,
    CASE WHEN net = 0 OR substr(last_state, 33) = '+' THEN 1 ELSE 0 END AS is_seen,
    max(resolves) OVER (PARTITION BY {KEY}) AS resolves,
    max(CASE WHEN counts = 1 AND (was = 'absent' OR now = 'absent' OR (what = 'accepted' AND pinned_hash IS NULL))
      THEN 1 ELSE 0 END) OVER (PARTITION BY {KEY}) AS gap,
    max(CASE WHEN what <> 'state' THEN touchable ELSE 0 END) OVER (PARTITION BY {KEY}) AS touchable,
    max(resolvable) OVER (PARTITION BY {KEY}) AS resolvable,
    CASE WHEN net = 0 OR max(reversed) OVER (PARTITION BY {KEY}) = 1 THEN live_at
      -- The first version that lasts, which need not be the one that was taken first.
      ELSE first_value(observed_at) OVER (PARTITION BY {KEY} ORDER BY CASE WHEN lasting = 1 THEN 0 ELSE 1 END, step)
      END AS since,
    substr(live_mark, 21) AS live_mark
  FROM counted
),
",
        touchable = rules::may_touch(dialect, book, IMAGES),
        resolvable = rules::may_resolve(dialect, book, IMAGES),
        was = state(&before, "h.prev_seen"),
        was_reversed = state(&after, "h.seen"),
        now = state(&after, "h.seen"),
        now_reversed = state(&before, "h.prev_seen"),
    )
}

/// Every place that differs, with what is there on either side.
fn differences(book: &RuleBook, dialect: Dialect) -> String {
    let marker = format!("\\{{\"path\":{},\"op\":\"(add|remove|replace)\"", dialect.json_text_inside());
    let marked = |column: &str, sort: &str| {
        let parts = [BETWEEN_CHANGES, sort, BETWEEN_PARTS, "{1}", BETWEEN_PARTS, "{2}", BETWEEN_PARTS];
        dialect.replace(column, &marker, &parts)
    };
    let pieces = dialect.explode(&dialect.split("marked", BETWEEN_CHANGES));
    let part = |number: usize| format!("split_part(piece, {BETWEEN_PARTS}, {number})");
    let unknown = match rules::excuses_unknown(dialect, book) {
        Some(condition) => {
            format!("CASE WHEN ({condition}) AND position('$unknown' IN path || rest) > 0 THEN 1 ELSE 0 END")
        }
        None => "0".to_owned(),
    };
    format!(
        "-- What is there on both sides and not the same: its changes as the rows tell them, one by one. Of arrays they
-- tell what differs inside, and beside that the whole of them.
marked AS (
  SELECT *, CASE WHEN counts = 1 AND was_hash <> is_hash AND was_seen = 1 AND is_seen = 1
    THEN '!' || coalesce({leaves}, '')
      || coalesce({lists}, '')
    ELSE '!' END AS marked
  FROM known
),
pieces AS (SELECT {KEY}, {KNOWN}, step, reversed, {pieces} AS piece FROM marked),
parts AS (
  SELECT {KEY}, {KNOWN}, step, reversed,
    CASE WHEN position({BETWEEN_PARTS} IN piece) > 0 THEN {sort} ELSE 'none' END AS sort,
    CASE WHEN position({BETWEEN_PARTS} IN piece) > 0 THEN {path} END AS path,
    {op} AS op, substr({rest}, 1, greatest(length({rest}) - 2, 0)) AS rest
  FROM pieces
),
-- With the least character between its steps a path comes right before what lies beneath it.
sorted AS (
  SELECT *, replace(path, '/', chr(1)) AS place_in_order,
    CASE WHEN sort = 'list' AND ({is_unordered}) THEN 1 ELSE 0 END AS bag
  FROM parts
),
enclosed AS (
  SELECT *, max(CASE WHEN sort = 'list' THEN place_in_order || chr(2) || CASE WHEN bag = 1 THEN 'b' ELSE 'l' END END)
    OVER (PARTITION BY {KEY}, step ORDER BY place_in_order, sort DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS list
  FROM sorted
),
-- An array without an order is taken whole; of all others, what differs inside of them.
elements AS (
  SELECT *, CASE WHEN sort = 'leaf' AND
    substr(place_in_order, 1, greatest(length(list) - 1, 0)) = substr(list, 1, greatest(length(list) - 2, 0)) || chr(1)
    THEN substr(list, greatest(length(list), 1)) ELSE 'n' END AS within
  FROM enclosed
),
cut AS (
  SELECT {KEY}, {KNOWN}, step, reversed, path, place_in_order, op, rest, bag,
    CASE WHEN within = 'l' THEN 1 ELSE 0 END AS listed, {unknown} AS unknown, position(',\"current\":' IN rest) AS cut,
    CASE WHEN op <> 'replace' OR substr(rest, 13, 1) NOT IN ('{{', '[')
      OR length(rest) - length(replace(rest, ',\"current\":', '')) = 11 THEN 1 ELSE 0 END AS clear
  FROM elements WHERE sort = 'none' OR (sort = 'leaf' AND within <> 'b') OR bag = 1
),
valued AS (
  SELECT *,
    CASE WHEN op = 'remove' THEN substr(rest, 13)
      WHEN op = 'replace' AND clear = 1 THEN substr(rest, 13, greatest(cut - 13, 0)) END AS baseline_value,
    CASE WHEN op = 'add' THEN substr(rest, 12)
      WHEN op = 'replace' AND clear = 1 THEN substr(rest, cut + 11) END AS current_value,
    row_number() OVER (PARTITION BY {KEY}, path ORDER BY step) AS nth,
    row_number() OVER (PARTITION BY {KEY}, path ORDER BY step DESC) AS nth_last
  FROM cut
),
-- Several changes of one place are one: from the first value to the last.
folded AS (
  SELECT {KEY}, {KNOWN}, path, place_in_order, max(bag) AS bag, max(listed) AS listed, max(unknown) AS unknown,
    min(clear) AS clear, count(*) AS times,
    max(CASE WHEN nth = 1 THEN CASE WHEN reversed = 1 THEN current_value ELSE baseline_value END END) AS was_value,
    max(CASE WHEN nth_last = 1 THEN CASE WHEN reversed = 1 THEN baseline_value ELSE current_value END END) AS is_value
  FROM valued GROUP BY {KEY}, {KNOWN}, path, place_in_order
),
beside AS (
  SELECT *, CASE WHEN substr(lead(place_in_order) OVER (PARTITION BY {KEY} ORDER BY place_in_order), 1,
    length(place_in_order) + 1) = place_in_order || chr(1) THEN 1 ELSE 0 END AS above
  FROM folded
),
differing AS (
  SELECT *, max(above) OVER (PARTITION BY {KEY}, split_part(path, '/', 2)) AS nested,
    CASE WHEN bag = 1 AND substr(was_value, 1, 1) = '[' AND substr(is_value, 1, 1) = '[' THEN 1 ELSE 0 END AS both_lists
  FROM beside
),
",
        leaves = marked("changes", "'leaf'"),
        lists = marked("arrays", "'list'"),
        sort = part(1),
        path = part(2),
        op = part(3),
        rest = part(4),
        is_unordered = rules::is_unordered(dialect, book),
    )
}

/// What the rules make of each place that differs.
fn judged(book: &RuleBook, dialect: Dialect) -> String {
    let undecided = |reason: &str| dialect.text(&format!("undecided: {reason}"));
    let composite = |value: &str| format!("substr({value}, 1, 1) IN ('{{', '[')");
    let sealed = |value: &str| dialect.matches(value, "\\A\\{\"\\$sealed\":\"[^\"]*\"\\}\\z");
    let sorted = |value: &str| {
        let element =
            format!("({}|[^\",\\[\\]{{}}]+|{})(?:,|\\z)", dialect.json_text(), dialect.json_nested(DEPTH - 1));
        let inside = format!("substr({value}, 2, greatest(length({value}) - 2, 0))");
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
        format!("CASE WHEN masked <> '' THEN {twice} END")
    };
    let nests = |value: &str, depth: usize| dialect.matches(value, &format!("\\A{}\\z", dialect.json_nested(depth)));
    let long =
        |sorted: &str| format!("length({sorted}) - length(replace({sorted}, {BETWEEN_CHANGES}, '')) > {LONGEST}");
    format!(
        "-- Of arrays without an order: their elements sorted, and the same without the members that do not count.
masks AS (
  SELECT *, CASE WHEN both_lists = 1 THEN {masked} ELSE '' END AS masked FROM differing
),
masked_lists AS (
  SELECT *, {masked_was} AS masked_was, {masked_is} AS masked_is FROM masks
),
sorted_lists AS (
  SELECT *,
    CASE WHEN both_lists = 1 THEN {sorted_was} END AS was_sorted,
    CASE WHEN both_lists = 1 THEN {sorted_is} END AS is_sorted,
    CASE WHEN masked <> '' THEN {sorted_masked_was} END AS was_masked,
    CASE WHEN masked <> '' THEN {sorted_masked_is} END AS is_masked
  FROM masked_lists
),
judged AS (
  SELECT *, CASE
    WHEN path IS NULL THEN 'nothing'
    WHEN nested = 1 THEN {nested}
    WHEN clear = 1 AND was_value IS NOT DISTINCT FROM is_value THEN 'nothing'
    WHEN listed = 1 AND ({in_unordered}) THEN {sorted_inside}
    WHEN both_lists = 1 AND ({ignored}) AND NOT ({resolves_within}) THEN 'excused'
    WHEN both_lists = 1 AND NOT (({shallow_was}) AND ({shallow_is})) THEN {deep}
    WHEN both_lists = 1 AND was_sorted = is_sorted THEN 'excused'
    WHEN both_lists = 1 AND (({reaches_array}) OR ({sorts_within})) THEN {inside}
    WHEN both_lists = 1 AND masked <> '' AND (NOT (({flat_was}) AND ({flat_is}))
      OR position('{{}}' IN masked_was || masked_is) > 0) THEN {inside}
    -- Longer ones are paired in another way.
    WHEN both_lists = 1 AND masked <> '' AND was_masked = is_masked
      THEN CASE WHEN {long_was} OR {long_is} THEN {inside} ELSE 'excused' END
    WHEN both_lists = 1 THEN 'counts'
    WHEN times > 1 AND clear = 1 AND {composite_was} AND substr(was_value, 1, 1) = substr(is_value, 1, 1)
      AND NOT ({sealed_was}) AND NOT ({sealed_is}) THEN {whole}
{explaining}    WHEN clear = 0 THEN {unclear}
    WHEN (was_value IS NULL OR is_value IS NULL) AND {composite_one} AND NOT ({sealed_one})
      AND ({reaches_one}) THEN {beneath}
    ELSE 'counts' END AS said
  FROM sorted_lists
),
",
        masked = rules::masked_members(dialect, book),
        masked_was = masked("was_value"),
        masked_is = masked("is_value"),
        sorted_was = sorted("was_value"),
        sorted_is = sorted("is_value"),
        sorted_masked_was = sorted("masked_was"),
        sorted_masked_is = sorted("masked_is"),
        nested = undecided(NESTED),
        in_unordered = rules::in_unordered(dialect, book),
        sorted_inside = undecided(SORTED),
        ignored = rules::ignored(dialect, book),
        resolves_within = rules::resolves_within(dialect, book),
        shallow_was = nests("was_value", DEPTH),
        shallow_is = nests("is_value", DEPTH),
        deep = undecided(DEEP),
        reaches_array = rules::reaches_into(dialect, book, "(was_value || is_value)", true),
        sorts_within = rules::sorts_within(dialect, book),
        inside = undecided(INSIDE),
        flat_was = nests("was_value", 2),
        flat_is = nests("is_value", 2),
        long_was = long("was_sorted"),
        long_is = long("is_sorted"),
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

/// One row for each resource that there is something to say of.
fn answer(book: &RuleBook, dialect: Dialect) -> String {
    let undecided = |reason: &str| dialect.text(&format!("undecided: {reason}"));
    // The nearest word on an extent holds: type and place, then one of the two, of which the worse, then neither.
    let complete = |side: &str| {
        format!(
            "coalesce(c.{side}, CASE WHEN t.{side} < p.{side} THEN t.{side} ELSE coalesce(p.{side}, t.{side}) END, \
             w.{side}, 0) AS {side}"
        )
    };
    format!(
        "summed AS (
  SELECT {KEY}, {KNOWN}, max(unknown) AS unknown,
    max(CASE WHEN said = 'counts' THEN 1 ELSE 0 END) AS counts,
    max(CASE WHEN said = 'excused' THEN 1 ELSE 0 END) AS excused,
    max(CASE WHEN said = 'resolved' THEN 1 ELSE 0 END) AS resolved,
    min(CASE WHEN said LIKE 'undecided%' THEN said END) AS undecided
  FROM judged GROUP BY {KEY}, {KNOWN}
),
looked AS (
  SELECT s.*, {expected}, {live},
    CASE WHEN {ignored} THEN 1 ELSE 0 END AS ignored,
    CASE WHEN s.resolves = 1 OR ({resolved}) THEN 1 ELSE 0 END AS gone_well
  FROM summed s
  LEFT JOIN coverage c ON c.in_stream = s.stream AND c.of_type = s.type AND c.in_place = s.place
  LEFT JOIN coverage t ON t.in_stream = s.stream AND t.of_type = s.type AND t.in_place = '*'
  LEFT JOIN coverage p ON p.in_stream = s.stream AND p.of_type = '*' AND p.in_place = s.place
  LEFT JOIN coverage w ON w.in_stream = s.stream AND w.of_type = '*' AND w.in_place = '*'
),
answered AS (
  SELECT {KEY}, since, CASE
    WHEN wants = 'all' AND live_mark IN ('s', 'u') THEN 'not_checked'
    WHEN wants = 'unseen' AND net = 0 AND live_mark = 'u' THEN 'not_checked'
    WHEN net = 0 AND accepted = 0 THEN 'nothing'
    WHEN is_hash IS NOT NULL AND is_seen = 0 THEN 'not_checked'
    WHEN was_hash IS NOT NULL AND was_seen = 0 THEN 'not_checked'
    WHEN was_hash IS NULL AND expected_complete = 0 THEN 'not_checked'
    WHEN is_hash IS NULL AND live_complete = 0 THEN 'not_checked'
    WHEN was_hash IS NULL AND is_hash IS NULL THEN 'nothing'
    WHEN (was_hash IS NULL OR is_hash IS NULL) AND other_basis = 1 THEN 'not_checked'
    WHEN was_hash IS NULL AND ignored = 1 THEN 'excused'
    WHEN was_hash IS NULL THEN 'unknown'
    WHEN is_hash IS NULL AND gone_well = 1 THEN 'resolved'
    WHEN is_hash IS NULL AND accepted = 0 AND resolvable = 1 THEN {gone}
    WHEN is_hash IS NULL THEN 'deleted'
    WHEN was_hash = is_hash THEN 'nothing'
    -- What differs is named by no rule, so it counts.
    WHEN touchable = 0 AND other_basis = 1 THEN 'not_checked'
    WHEN touchable = 0 THEN 'modified'
    WHEN gap = 1 THEN {gap}
    WHEN unknown = 1 THEN {unknown}
    WHEN counts = 1 AND other_basis = 1 THEN 'not_checked'
    WHEN counts = 1 THEN 'modified'
    WHEN undecided IS NOT NULL THEN undecided
    WHEN resolved = 1 THEN 'resolved'
    WHEN excused = 1 THEN 'excused'
    ELSE {untold} END AS said
  FROM looked
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
        expected = complete("expected_complete"),
        live = complete("live_complete"),
        ignored = rules::ignored_whole(dialect, book),
        resolved = rules::resolved_whole(dialect, book),
        gone = undecided(GONE),
        gap = undecided(GAP),
        unknown = undecided(UNKNOWN),
        untold = undecided(UNTOLD),
    )
}
