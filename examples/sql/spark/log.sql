-- The records of the store's own log, as they are. Everything but `history` is read from here.
CREATE OR REPLACE TEMPORARY VIEW log AS
SELECT CAST(regexp_extract(_metadata.file_name, '([0-9]{20})', 1) AS BIGINT) AS number,
  get_json_object(value, '$.commitInfo.driftline') AS record
FROM text.`{store}/_delta_log/*.json`
WHERE value LIKE '{"commitInfo":%'
