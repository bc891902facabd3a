-- The records of the store's own log, as they are. Everything but `history` is read from here.
CREATE OR REPLACE VIEW log AS
SELECT CAST(regexp_extract(filename, '([0-9]{20})[.]json$', 1) AS BIGINT) AS number,
  json -> '$.commitInfo.driftline' AS record,
  json ->> '$.add.path' AS added_file,
  json ->> '$.remove.path' AS removed_file
FROM read_ndjson_objects('{store}/_delta_log/*.json', filename = true, maximum_object_size = 268435456);
