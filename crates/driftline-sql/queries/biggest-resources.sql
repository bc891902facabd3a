-- title: The largest resources
-- tells: What takes the most room, and when it last changed.
-- param limit: number = 20 | how many
SELECT octet_length(properties) AS bytes, type, place, id, stream, changed_at
FROM resources
ORDER BY bytes DESC, type, place, id, stream
LIMIT $limit
