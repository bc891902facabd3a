-- Every row of the files that count: those that the log added and did not remove again. Run it anew after a commit.
SET VARIABLE driftline_files = (
  SELECT list('{store}/' || url_decode(added_file) ORDER BY number) FROM log
  WHERE added_file IS NOT NULL AND added_file NOT IN (SELECT removed_file FROM log WHERE removed_file IS NOT NULL)
);
CREATE OR REPLACE VIEW history AS SELECT * FROM read_parquet(getvariable('driftline_files'));
