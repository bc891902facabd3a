-- title: Changes by day
-- tells: How many resources were added, changed and removed on each day, as observed, before any rule.
-- param since: time = 30d | the first day
-- param type: text = % | only types like this; % stands for anything
SELECT date_trunc('day', observed_at) AS day,
       count(*) FILTER (WHERE op = 'add') AS added,
       count(*) FILTER (WHERE op = 'change') AS changed,
       count(*) FILTER (WHERE op = 'remove') AS removed
FROM changes
WHERE observed_at >= $since AND type LIKE $type
GROUP BY 1
ORDER BY day
