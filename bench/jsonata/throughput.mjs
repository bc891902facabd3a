// The same as crates/jsonata/examples/throughput.rs, with npm's jsonata.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [file, rounds] = process.argv.slice(2);
const jsonata = createRequire(process.env.DRIFTLINE_TEST_JSONATA + "/")("jsonata");
const expressions = new Map();
const cases = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => {
    const { expr, data } = JSON.parse(line);
    if (!expressions.has(expr)) expressions.set(expr, jsonata(expr));
    return [expressions.get(expr), data];
});
let best = Infinity;
let values = 0;
for (let round = 0; round < rounds; round++) {
    values = 0;
    const start = process.cpuUsage();
    for (const [expression, data] of cases) {
        try {
            await expression.evaluate(data);
            values += 1;
        } catch {}
    }
    const { user, system } = process.cpuUsage(start);
    best = Math.min(best, (user + system) * 1000);
}
console.log(JSON.stringify({ nanoseconds: Math.round(best / cases.length), evaluations: cases.length, values }));
