-- What there is now: the newest version of each stream.
CREATE OR REPLACE VIEW resources AS
WITH points AS (
  SELECT stream, max(version) AS version FROM versions WHERE nature = 'state' GROUP BY stream
)
SELECT h.stream, p.version, h.type, h.place, h.id, any_value(h.account) AS account, any_value(h.region) AS region,
  arg_max(h.seen, h.version) AS seen,
  arg_max(h.hash, h.version) AS hash,
  arg_max(h.after, h.version) FILTER (WHERE h.after IS NOT NULL) AS properties,
  coalesce(arg_max(h.observed_at, h.version) FILTER (WHERE h.op IN ('add', 'change')),
    arg_min(h.observed_at, h.version)) AS changed_at
FROM history h JOIN points p ON p.stream = h.stream
GROUP BY h.stream, p.version, h.type, h.place, h.id
HAVING arg_max(h.op, h.version) <> 'remove';
