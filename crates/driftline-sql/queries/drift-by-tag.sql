-- title: Drift by tag, such as the team
-- tells: For each value of a tag how many resources have it, and how many of them are drifted, unknown or not checked.
-- tells: What is gone counts for whoever it belonged to; what has no such tag is `(none)`.
-- param tag: text = team | the name of the tag, in the capitals that it is written in
WITH gone AS (
    SELECT stream, type, place, id, last_value(before ORDER BY version) AS before
    FROM changes
    WHERE op = 'remove'
    GROUP BY stream, type, place, id
),
live AS (
    SELECT coalesce(tag(properties, $tag), '(none)') AS tag, count(*) AS resources
    FROM resources
    GROUP BY 1
),
found AS (
    SELECT coalesce(tag(resources.properties, $tag), tag(gone.before, $tag), '(none)') AS tag,
           count(*) FILTER (WHERE findings.status = 'drifted') AS drifted,
           count(*) FILTER (WHERE findings.status = 'unknown') AS unknown,
           count(*) FILTER (WHERE findings.status = 'not_checked') AS not_checked
    FROM findings
    LEFT JOIN resources
           ON resources.stream = findings.stream AND resources.type = findings.type
          AND resources.place = findings.place AND resources.id = findings.id
    LEFT JOIN gone
           ON gone.stream = findings.stream AND gone.type = findings.type
          AND gone.place = findings.place AND gone.id = findings.id
    GROUP BY 1
)
SELECT coalesce(live.tag, found.tag) AS tag,
       coalesce(live.resources, 0) AS resources,
       coalesce(found.drifted, 0) AS drifted,
       coalesce(found.unknown, 0) AS unknown,
       coalesce(found.not_checked, 0) AS not_checked
FROM live FULL JOIN found ON found.tag = live.tag
ORDER BY drifted DESC, unknown DESC, not_checked DESC, tag
