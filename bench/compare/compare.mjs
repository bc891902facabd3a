// What crates/driftline-sources/examples/compare.rs does, in plain JavaScript with npm's jsonata for the transforms.
// Facts are prepared and expressions are parsed beforehand. It is a peer for speed, not an oracle: its policies and
// masked texts are coarser, so it tells a few more of the recorded pairs as modified (50, ours 46).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

const [file, factsFile, rounds] = process.argv.slice(2);
const jsonata = createRequire(process.env.DRIFTLINE_TEST_JSONATA + "/")("jsonata");
const pairs = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));

// Patterns become a tree that is walked beside the declared value.
const facts = new Map(Object.entries(JSON.parse(readFileSync(factsFile, "utf8"))).map(([kind, said]) => {
    const root = { names: new Map() };
    const at = (path) => path.split("/").slice(1).reduce((node, name) => {
        if (!node.names.has(name)) node.names.set(name, { names: new Map() });
        return node.names.get(name);
    }, root);
    for (const mark of ["writeOnly", "readOnly", "unordered", "attributeLists", "scalars", "notReadBack"])
        for (const path of said[mark] ?? []) at(path)[mark] = true;
    if (said.tags) at(said.tags).tags = true;
    for (const [path, value] of said.defaults ?? []) at(path).default = value;
    for (const [path, alternatives] of said.transforms ?? []) {
        const parsed = alternatives.flatMap((text) => { try { return [[text, jsonata(text)]]; } catch { return []; } });
        at(path).transforms = parsed;
    }
    return [kind, root];
}));

const NOTHING = { names: new Map() };
const step = (node, name) => node.names.get(name) ?? node.names.get("*") ?? NOTHING;
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isEmpty = (value) => value === null || value === "" ||
    (typeof value === "object" && Object.values(value).every(isEmpty));
const unresolved = (value) => isObject(value) ? "$unknown" in value : typeof value === "string" &&
    (/^__.*unresolved.*__$/i.test(value) || /^\*{4,}$/.test(value) || value.includes("{{resolve:"));
const document = (value) => {
    if (typeof value !== "string" || !/^\s*[{[]/.test(value)) return undefined;
    try { return JSON.parse(value); } catch { return undefined; }
};
const isPolicy = (value) => isObject(value) && [value.Statement].flat().every((one) => one?.Effect !== undefined);
const statement = (one) => Object.fromEntries(Object.entries(one).map(([name, value]) => {
    if (["Action", "NotAction", "Resource", "NotResource"].includes(name)) return [name, [value].flat().sort()];
    if (name === "Principal" && isObject(value))
        return [name, Object.fromEntries(Object.entries(value).map(([who, ids]) => [who, [ids].flat().sort()]))];
    return [name, value];
}));
const samePolicy = (declared, live) => {
    const rest = [live.Statement].flat().map(statement);
    return [declared.Statement].flat().map(statement).every((one) => {
        const found = rest.findIndex((other) => isDeepStrictEqual(one, other));
        return found >= 0 && rest.splice(found, 1);
    });
};
const sameScalar = (declared, live, known) => {
    if (typeof declared !== typeof live) return String(declared).toLowerCase() === String(live).toLowerCase();
    return known && typeof declared === "string" && declared.trim() !== "" && Number(declared) === Number(live);
};
const respelled = (value) => typeof value === "number" ? String(value)
    : typeof value === "string" && value.trim() !== "" && !Number.isNaN(Number(value)) ? Number(value) : undefined;

async function transformed(root, path, parents, declared, live, transforms) {
    const [leaf] = path.slice(-1);
    for (const [text, expression] of transforms) {
        const fromRoot = path.length > 1 && new RegExp(`(^|[^\\w.$'"])${path[0]}\\.`).test(text);
        const contexts = [fromRoot ? root : parents.at(-1)];
        const other = respelled(declared);
        if (other !== undefined && !fromRoot) contexts.push({ ...parents.at(-1), [leaf]: other });
        for (const context of contexts) {
            let result;
            try { result = await expression.evaluate(context); } catch { continue; }
            if (result === undefined) continue;
            if (live === undefined ? isEmpty(result) : isDeepStrictEqual(result, live) || sameScalar(result, live)) return true;
            if (typeof result === "string" && typeof live === "string" && result !== declared)
                try { if (new RegExp(`^(?:${result})$`).test(live)) return true; } catch {}
        }
    }
    return false;
}

// How many places differ.
async function differing(root, node, path, parents, declared, live) {
    if (unresolved(declared) || node.writeOnly || isDeepStrictEqual(declared, live) || node.readOnly) return 0;
    const count = await inside(root, node, path, parents, declared, live);
    if (count > 0 && node.transforms && await transformed(root, path, parents, declared, live, node.transforms)) return 0;
    return count;
}

async function inside(root, node, path, parents, declared, live) {
    if (live === undefined) return isEmpty(declared) || node.notReadBack || isDeepStrictEqual(node.default, declared) ? 0 : 1;
    const [left, right] = [document(declared), document(live)];
    if (left !== undefined || (right !== undefined && typeof declared === "object"))
        return differing(root, node, path, parents, left ?? declared, right ?? live);
    if (isObject(declared) && isObject(live)) {
        if (isPolicy(declared)) return samePolicy(declared, live) ? 0 : 1;
        let count = 0;
        for (const [name, value] of Object.entries(declared))
            count += await differing(root, step(node, name), [...path, name], [...parents, declared], value, live[name]);
        return count;
    }
    if (Array.isArray(declared) && Array.isArray(live)) return elements(root, node, path, parents, declared, live);
    return sameScalar(declared, live, node.scalars) || (isEmpty(declared) && isEmpty(live)) ? 0 : 1;
}

async function elements(root, node, path, parents, declared, live) {
    const each = (at, value, other) =>
        differing(root, step(node, String(at)), [...path, String(at)], [...parents, declared], value, other);
    let count = 0;
    const tags = node.tags || (/Tags$|^TagList$/.test(path.at(-1)) && declared.every((one) => one?.Key !== undefined));
    if (tags || node.attributeLists) {
        const name = ["Key", "Name", "OptionName"].find((name) => declared.every((one) => one?.[name] !== undefined));
        const known = new Map(live.map((one) => [one?.[name], one]));
        for (const [at, one] of declared.entries()) count += await each(at, one, known.get(one[name]));
        if (!tags) return count;
        const named = new Set(declared.map((one) => one[name]));
        return count + live.filter((one) => !named.has(one[name]) && !String(one[name]).startsWith("aws:")).length;
    }
    if (node.unordered) {
        const rest = [...live];
        const open = declared.filter((one) => {
            const found = rest.findIndex((other) => isDeepStrictEqual(one, other));
            return found < 0 || !rest.splice(found, 1);
        });
        for (const [at, one] of open.entries()) {
            let [best, which] = [Infinity, 0];
            for (const [index, other] of rest.entries()) {
                const cost = await each(at, one, other);
                if (cost < best) [best, which] = [cost, index];
            }
            rest.splice(which, 1);
            count += best === Infinity ? 1 : best;
        }
        return count + rest.length;
    }
    for (let at = 0; at < Math.max(declared.length, live.length); at++)
        count += at < declared.length ? await each(at, declared[at], live[at]) : 1;
    return count;
}

const count = async () => {
    let modified = 0;
    for (const { type, declared, live } of pairs)
        if (await differing(declared, facts.get(type) ?? NOTHING, [], [], declared, live) > 0) modified += 1;
    return modified;
};
// The first rounds are compiled by the engine while they run.
let modified = 0;
for (let round = 0; round < 20; round++) modified = await count();
const start = process.cpuUsage();
for (let round = 0; round < rounds; round++) modified = await count();
const { user, system } = process.cpuUsage(start);
console.log(JSON.stringify({ nanoseconds: Math.round(((user + system) * 1000) / rounds), pairs: pairs.length, modified }));
