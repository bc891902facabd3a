// Which resources differ, by jsondiffpatch: two objects by id, in memory. Prints CPU seconds and counts as JSON.
import { createReadStream } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { createInterface } from "node:readline";
import { join } from "node:path";

const [folder, oldFile, newFile] = process.argv.slice(2);
const entry = createRequire(join(folder, "package.json")).resolve("jsondiffpatch");
const { create } = await import(pathToFileURL(entry).href);

async function load(file) {
  const all = {};
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    const resource = JSON.parse(line);
    if (resource.canonicalId) all[resource.canonicalId] = resource.snapshot;
  }
  return all;
}

const [before, after] = [await load(oldFile), await load(newFile)];
// Elements of a list are paired by what they are; long texts are not diffed letter by letter.
const differ = create({ objectHash: (item) => JSON.stringify(item), textDiff: { minLength: 1e9 } });
const started = process.cpuUsage();
const delta = differ.diff(before, after) ?? {};
const spent = process.cpuUsage(started);
const counts = { modified: 0, deleted: 0, unknown: 0 };
for (const change of Object.values(delta)) {
  if (!Array.isArray(change)) counts.modified += 1;
  else if (change.length === 3) counts.deleted += 1;
  else if (change.length === 1) counts.unknown += 1;
  else counts.modified += 1;
}
console.log(JSON.stringify({ cpu: (spent.user + spent.system) / 1e6, ...counts }));
