-- What there was at a time, resources_at('2026-06-29T10:00:00Z'), or in a version, resources_at('inventory/prod', 2).
CREATE OR REPLACE TEMPORARY FUNCTION resources_at(time_or_stream STRING, of_version BIGINT DEFAULT NULL)
RETURNS TABLE (stream STRING, version BIGINT, type STRING, place STRING, id STRING, account STRING, region STRING,
  seen BOOLEAN, hash BINARY, properties STRING, changed_at TIMESTAMP)
RETURN
WITH points AS (
  SELECT v.stream, max(v.version) AS version FROM versions v
  WHERE v.nature = 'state' AND CASE WHEN of_version IS NULL THEN v.taken_at <= CAST(time_or_stream AS TIMESTAMP)
    ELSE v.stream = time_or_stream AND v.version = of_version END
  GROUP BY v.stream
)
SELECT h.stream, p.version, h.type, h.place, h.id, any_value(h.account) AS account, any_value(h.region) AS region,
  max_by(h.seen, h.version) AS seen,
  max_by(h.hash, h.version) AS hash,
  -- Rows of op `seen` and `unseen` have no image: the last one that there is holds.
  max_by(h.after, h.version) FILTER (WHERE h.after IS NOT NULL) AS properties,
  coalesce(max_by(h.observed_at, h.version) FILTER (WHERE h.op IN ('add', 'change')),
    min_by(h.observed_at, h.version)) AS changed_at
FROM history h JOIN points p ON p.stream = h.stream
WHERE h.version <= p.version
GROUP BY h.stream, p.version, h.type, h.place, h.id
HAVING max_by(h.op, h.version) <> 'remove'
