-- title: Things that more or fewer others lead to
-- tells: In-degrees and out-degrees in the graph of events, against the baseline. Only nodes whose degrees differ.
-- param baseline: text = main | the baseline that it is held against
WITH now AS (
    SELECT json_get_str(properties, 'from') AS source, json_get_str(properties, 'to') AS target, 1 AS edges, 1 AS new
    FROM resources
    WHERE type = 'Driftline::Topology::Edge'
),
since AS (
    SELECT json_get_str(coalesce(changes.after, changes.before), 'from') AS source,
           json_get_str(coalesce(changes.after, changes.before), 'to') AS target,
           CASE changes.op WHEN 'add' THEN 1 ELSE -1 END AS more
    FROM changes
    JOIN baselines ON baselines.stream = changes.stream AND changes.version > baselines.version
    WHERE baselines.name = $baseline AND changes.type = 'Driftline::Topology::Edge' AND changes.op IN ('add', 'remove')
),
ends AS (
    SELECT target AS node, 1 AS is_in, 0 AS is_out, 0 AS more_in, 0 AS more_out FROM now
    UNION ALL SELECT source, 0, 1, 0, 0 FROM now
    UNION ALL SELECT target, 0, 0, more, 0 FROM since
    UNION ALL SELECT source, 0, 0, 0, more FROM since
)
SELECT node,
       sum(is_in) - sum(more_in) AS in_before, sum(is_in) AS in_now,
       sum(is_out) - sum(more_out) AS out_before, sum(is_out) AS out_now
FROM ends
GROUP BY node
HAVING sum(more_in) <> 0 OR sum(more_out) <> 0
ORDER BY abs(sum(more_in)) + abs(sum(more_out)) DESC, node
