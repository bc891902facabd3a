-- What came, changed and went, with its image before and after. Before any rule; `findings` are after them.
CREATE OR REPLACE TEMPORARY VIEW changes AS
SELECT stream, version, observed_at, op, type, place, id, account, region, hash, prev_hash, before, after, changes
FROM history
WHERE op IN ('add', 'change', 'remove') AND stream NOT IN (SELECT stream FROM versions WHERE nature = 'events')
