-- title: Resources that go back and forth
-- tells: How often each resource became what it had been before: changed back, or removed and put back as it was.
-- tells: That is what was observed, before any rule.
-- param since: time = 30d | only what came back after this time
-- param times: number = 2 | only what came back so often
SELECT back.stream, back.type, back.place, back.id,
       count(DISTINCT back.version) AS times,
       max(back.observed_at) AS last_at
FROM changes back
JOIN changes left_behind
  ON left_behind.stream = back.stream AND left_behind.type = back.type
 AND left_behind.place = back.place AND left_behind.id = back.id
 AND left_behind.prev_hash = back.hash AND left_behind.version < back.version
WHERE back.observed_at >= $since
GROUP BY back.stream, back.type, back.place, back.id
HAVING count(DISTINCT back.version) >= $times
ORDER BY times DESC, last_at DESC, type, place, id, stream
