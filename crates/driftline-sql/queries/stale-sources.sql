-- title: Sources that nobody has observed for long
-- tells: When each source was last observed, and how much of it was seen. The oldest first.
-- param hours: number = 0 | only sources that are older than this
-- param now: time = now | from when their age is counted
SELECT stream, max(version) AS version, max(taken_at) AS taken_at,
       round((date_part('epoch', $now) - date_part('epoch', max(taken_at))) / 3600, 1) AS hours,
       last_value(resources ORDER BY version) AS resources,
       last_value(unseen ORDER BY version) AS unseen,
       last_value(partial_extents ORDER BY version) AS partial_extents
FROM versions
WHERE nature = 'state'
GROUP BY stream
HAVING date_part('epoch', $now) - date_part('epoch', max(taken_at)) >= $hours * 3600
ORDER BY taken_at, stream
