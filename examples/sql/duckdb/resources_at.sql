-- What there was at a time, resources_at('2026-06-29T10:00:00Z'), or in a version, resources_at('inventory/prod', 2).
CREATE OR REPLACE MACRO resources_at(time_or_stream, of_version := NULL) AS TABLE
WITH points AS (
  SELECT v.stream, max(v.version) AS version FROM versions v
  WHERE v.nature = 'state' AND CASE WHEN of_version IS NULL THEN v.taken_at <= CAST(time_or_stream AS TIMESTAMPTZ)
    ELSE v.stream = time_or_stream AND v.version = of_version END
  GROUP BY v.stream
)
SELECT h.stream, p.version, h.type, h.place, h.id, any_value(h.account) AS account, any_value(h.region) AS region,
  arg_max(h.seen, h.version) AS seen,
  arg_max(h.hash, h.version) AS hash,
  -- Rows of op `seen` and `unseen` have no image: the last one that there is holds.
  arg_max(h.after, h.version) FILTER (WHERE h.after IS NOT NULL) AS properties,
  coalesce(arg_max(h.observed_at, h.version) FILTER (WHERE h.op IN ('add', 'change')),
    arg_min(h.observed_at, h.version)) AS changed_at
FROM history h JOIN points p ON p.stream = h.stream
WHERE h.version <= p.version
GROUP BY h.stream, p.version, h.type, h.place, h.id
HAVING arg_max(h.op, h.version) <> 'remove';
