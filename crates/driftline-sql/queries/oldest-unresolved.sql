-- title: The oldest drift that nobody has resolved
-- tells: What is drifted or unknown, the longest first, with how bad it is.
-- param limit: number = 20 | how many
-- param now: time = now | from when its age is counted
SELECT since,
       round((date_part('epoch', $now) - date_part('epoch', since)) / 3600, 1) AS hours,
       severity, status, kind, type, place, id, stream
FROM findings
WHERE status IN ('drifted', 'unknown')
ORDER BY since ASC NULLS LAST, type, place, id, stream
LIMIT $limit
