-- title: Drift by type
-- tells: For each type how many resources there are, and how many of them are drifted, unknown or not checked.
-- tells: A resource that two sources see counts twice, as in `driftline drift`.
SELECT coalesce(live.type, found.type) AS type,
       coalesce(live.resources, 0) AS resources,
       coalesce(found.drifted, 0) AS drifted,
       coalesce(found.unknown, 0) AS unknown,
       coalesce(found.not_checked, 0) AS not_checked
FROM (SELECT type, count(*) AS resources FROM resources GROUP BY type) live
FULL JOIN (
    SELECT type,
           count(*) FILTER (WHERE status = 'drifted') AS drifted,
           count(*) FILTER (WHERE status = 'unknown') AS unknown,
           count(*) FILTER (WHERE status = 'not_checked') AS not_checked
    FROM findings
    GROUP BY type
) found ON found.type = live.type
ORDER BY drifted DESC, unknown DESC, not_checked DESC, type
