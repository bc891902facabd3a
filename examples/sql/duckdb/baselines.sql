-- Which version of each stream a baseline pins. A pin stays until it is set anew or the baseline is removed.
CREATE OR REPLACE VIEW baselines AS
WITH removals AS (
  SELECT record ->> '$.name' AS name, max(number) AS number FROM log
  WHERE record ->> '$.step' = 'baselineRemove' GROUP BY ALL
),
settings AS (
  SELECT log.number, log.record ->> '$.name' AS name, CAST(log.record ->> '$.at' AS TIMESTAMPTZ) AS set_at, log.record
  FROM log LEFT JOIN removals ON removals.name = log.record ->> '$.name'
  WHERE log.record ->> '$.step' = 'baselineSet' AND log.number > coalesce(removals.number, -1)
),
pins AS (
  SELECT settings.name, pin.key AS stream, arg_max(CAST(pin.value AS BIGINT), settings.number) AS version
  FROM settings, json_each(settings.record -> '$.pins') AS pin GROUP BY ALL
)
SELECT pins.name, pins.stream, pins.version,
  (SELECT arg_max(settings.set_at, settings.number) FROM settings WHERE settings.name = pins.name) AS set_at
FROM pins;
