// Answers lines of {"expr", "data"?} with npm's jsonata, one line each: {"value"}, {"undefined"} or {"error"}.
import { createRequire } from "node:module";
import readline from "node:readline";

const jsonata = createRequire(process.env.DRIFTLINE_TEST_JSONATA + "/")("jsonata");
const known = new Map();

for await (const line of readline.createInterface({ input: process.stdin })) {
    const { expr, data } = JSON.parse(line);
    let answer;
    try {
        if (!known.has(expr)) known.set(expr, jsonata(expr));
        const value = await known.get(expr).evaluate(data);
        answer = value === undefined ? { undefined: true } : { value };
    } catch (error) {
        answer = { error: error.code ?? "none" };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
}
