-- title: Mean time in drift, by type
-- tells: How long resources differed from the baseline. `open` is what differs now, as `driftline drift` says, until now;
-- tells: `closed` is what differed and came back to exactly what the baseline has. Times are those of observations.
-- param baseline: text = main | the baseline that came to be left; what is open is always of the configured one
-- param now: time = now | until when open drift is counted
WITH steps AS (
    SELECT changes.stream, changes.type, changes.place, changes.id, changes.version, changes.observed_at, changes.hash,
           first_value(changes.prev_hash) OVER (
               PARTITION BY changes.stream, changes.type, changes.place, changes.id ORDER BY changes.version
           ) AS pinned
    FROM changes
    JOIN baselines ON baselines.stream = changes.stream AND changes.version > baselines.version
    WHERE baselines.name = $baseline
),
sides AS (
    SELECT *, hash IS DISTINCT FROM pinned AS differs,
           coalesce(lag(hash IS DISTINCT FROM pinned) OVER (PARTITION BY stream, type, place, id ORDER BY version), false)
               AS differed
    FROM steps
),
spans AS (
    SELECT type, differs, differed, observed_at AS until,
           max(CASE WHEN differs AND NOT differed THEN observed_at END) OVER (
               PARTITION BY stream, type, place, id ORDER BY version
               ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
           ) AS since
    FROM sides
),
times AS (
    SELECT type, true AS closed, date_part('epoch', until) - date_part('epoch', since) AS seconds
    FROM spans
    WHERE differed AND NOT differs
    UNION ALL
    SELECT type, false AS closed, date_part('epoch', $now) - date_part('epoch', since) AS seconds
    FROM findings
    WHERE status IN ('drifted', 'unknown') AND since IS NOT NULL
)
SELECT type,
       count(*) FILTER (WHERE NOT closed) AS open,
       count(*) FILTER (WHERE closed) AS closed,
       round(avg(seconds) / 3600, 1) AS mean_hours,
       round(max(seconds) / 3600, 1) AS longest_hours
FROM times
GROUP BY type
ORDER BY mean_hours DESC, type
