-- Which version of each stream a baseline pins. A pin stays until it is set anew or the baseline is removed.
CREATE OR REPLACE TEMPORARY VIEW baselines AS
WITH removals AS (
  SELECT get_json_object(record, '$.name') AS name, max(number) AS number FROM log
  WHERE get_json_object(record, '$.step') = 'baselineRemove' GROUP BY 1
),
settings AS (
  SELECT log.number, get_json_object(record, '$.name') AS name,
    CAST(get_json_object(record, '$.at') AS TIMESTAMP) AS set_at,
    from_json(get_json_object(record, '$.pins'), 'map<string, bigint>') AS pins
  FROM log WHERE get_json_object(record, '$.step') = 'baselineSet'
),
lasting AS (
  SELECT s.number, s.name, s.pins, max_by(s.set_at, s.number) OVER (PARTITION BY s.name) AS set_at
  FROM settings s LEFT JOIN removals r ON r.name = s.name WHERE s.number > coalesce(r.number, -1)
),
pinned AS (
  SELECT number, name, set_at, explode(pins) AS (stream, version) FROM lasting
)
SELECT name, stream, max_by(version, number) AS version, max(set_at) AS set_at FROM pinned GROUP BY name, stream
