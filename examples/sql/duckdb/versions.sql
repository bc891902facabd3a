-- The versions that there are: what was committed, without what retention dropped.
CREATE OR REPLACE VIEW versions AS
WITH thinned AS (
  SELECT log.number, stream.key AS stream, stream.value AS what
  FROM log, json_each(log.record -> '$.streams') AS stream
  WHERE log.record ->> '$.step' = 'thin'
),
dropped AS (
  SELECT stream, unnest(CAST(what -> '$.dropped' AS BIGINT[])) AS version FROM thinned
),
-- A version that was kept tells of what changed since the one before it that was kept.
rewritten AS (
  SELECT number, stream, unnest(CAST(what -> '$.rewritten' AS JSON[])) AS what FROM thinned
),
retold AS (
  SELECT stream, CAST(what ->> '$.version' AS BIGINT) AS version, arg_max(what -> '$.changes', number) AS changes
  FROM rewritten GROUP BY ALL
),
committed AS (
  SELECT number, record, record ->> '$.stream' AS stream, CAST(record ->> '$.version' AS BIGINT) AS version
  FROM log WHERE record ->> '$.step' = 'version'
)
SELECT c.stream,
  CASE WHEN (c.record -> '$.nature') IS NULL THEN 'state' ELSE 'events' END AS nature,
  c.version,
  CAST(c.record ->> '$.takenAt' AS TIMESTAMPTZ) AS taken_at,
  CAST(c.record ->> '$.at' AS TIMESTAMPTZ) AS committed_at,
  c.record ->> '$.observer' AS observer,
  CAST(c.record ->> '$.rows' AS BIGINT) AS resources,
  CAST(c.record ->> '$.unseen' AS BIGINT) AS unseen,
  CAST(coalesce(r.changes, c.record -> '$.changes') ->> '$.add' AS BIGINT) AS added,
  CAST(coalesce(r.changes, c.record -> '$.changes') ->> '$.change' AS BIGINT) AS changed,
  CAST(coalesce(r.changes, c.record -> '$.changes') ->> '$.remove' AS BIGINT) AS removed,
  CAST(c.record ->> '$.completeExtents' AS BIGINT) AS complete_extents,
  CAST(c.record ->> '$.partialExtents' AS BIGINT) AS partial_extents,
  coalesce(json_array_length(c.record -> '$.problems'), 0) AS problems,
  c.record ->> '$.digest' AS digest
FROM committed c
LEFT JOIN retold r ON r.stream = c.stream AND r.version = c.version
WHERE NOT EXISTS (SELECT 1 FROM dropped d WHERE d.stream = c.stream AND d.version = c.version);
