-- The versions that there are: what was committed, without what retention dropped.
CREATE OR REPLACE TEMPORARY VIEW versions AS
WITH thinned AS (
  SELECT number, explode(from_json(get_json_object(record, '$.streams'),
    'map<string, struct<dropped: array<bigint>, rewritten: array<struct<version: bigint,
      changes: struct<add: bigint, change: bigint, remove: bigint>>>>>')) AS (stream, what)
  FROM log WHERE get_json_object(record, '$.step') = 'thin'
),
dropped AS (
  SELECT stream, explode(what.dropped) AS version FROM thinned
),
-- A version that was kept tells of what changed since the one before it that was kept.
rewritten AS (
  SELECT number, stream, explode(what.rewritten) AS what FROM thinned
),
retold AS (
  SELECT stream, what.version AS version, max_by(what.changes, number) AS changes
  FROM rewritten GROUP BY stream, what.version
),
committed AS (
  SELECT from_json(record, 'stream string, version bigint, takenAt timestamp, at timestamp, observer string, rows bigint,
    unseen bigint, changes struct<add: bigint, change: bigint, remove: bigint>, completeExtents bigint,
    partialExtents bigint, problems array<string>, digest string, nature string') AS v
  FROM log WHERE get_json_object(record, '$.step') = 'version'
)
SELECT c.v.stream AS stream,
  CASE WHEN c.v.nature IS NULL THEN 'state' ELSE 'events' END AS nature,
  c.v.version AS version,
  c.v.takenAt AS taken_at,
  c.v.at AS committed_at,
  c.v.observer AS observer,
  c.v.rows AS resources,
  c.v.unseen AS unseen,
  coalesce(r.changes, c.v.changes).add AS added,
  coalesce(r.changes, c.v.changes).change AS changed,
  coalesce(r.changes, c.v.changes).remove AS removed,
  c.v.completeExtents AS complete_extents,
  c.v.partialExtents AS partial_extents,
  CAST(coalesce(size(c.v.problems), 0) AS BIGINT) AS problems,
  c.v.digest AS digest
FROM committed c
LEFT JOIN retold r ON r.stream = c.v.stream AND r.version = c.v.version
LEFT ANTI JOIN dropped d ON d.stream = c.v.stream AND d.version = c.v.version
