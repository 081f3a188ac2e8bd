import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { OperatorError } from "../../kernel/errors.ts";
import { type Dag, NodeSchema } from "../definitions/dag.ts";
import { nodeContext } from "./node-context.fixture.ts";
import { FinalFailure, mayRetry } from "./node-type.ts";
import { noop } from "./noop.ts";
import { createRegistry } from "./registry.ts";
import { sleep } from "./sleep.ts";
import { loadUserTypes, type UserType } from "./user-types.ts";

let root: string;
let folder: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "millrace-types-"));
  // Vitest transforms modules, except those below a folder of this name, which Node loads.
  folder = join(root, "node_modules");
  await mkdir(folder);
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function load(text: string, name = "own.mjs"): Promise<UserType[]> {
  await writeFile(join(folder, name), text);
  return loadUserTypes([`./${name}`], folder);
}

async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(OperatorError);
  return (error as OperatorError).message;
}

const GOOD = `{ type: "greet", cfg: { type: "object", properties: { who: { type: "string" } } },
  execute: (ctx, { who }) => ({ artifact: "Hello " + who }) }`;

describe("a file of node types", () => {
  test("may export one type", async () => {
    const [greet] = await load(`export default ${GOOD};`);
    expect(greet).toMatchObject({ type: "greet", summary: "", file: "./own.mjs" });
    expect(await greet?.execute(nodeContext(), { who: "Ada" })).toEqual({ artifact: "Hello Ada" });
  });

  test("may export a list, and have methods that use `this`", async () => {
    const types = await load(`
      class Count {
        summary = "Counts."; cfg = { type: "object" };
        constructor(type) { this.type = type; }
        execute() { return { artifact: this.type }; }
      }
      export default [new Count("one"), new Count("two")];`);
    expect(types.map(({ type, summary }) => [type, summary])).toEqual([
      ["one", "Counts."],
      ["two", "Counts."],
    ]);
    expect(await types[1]?.execute(nodeContext(), {})).toEqual({ artifact: "two" });
  });

  test("gets its unknown fields refused, unless its schema permits them", async () => {
    const open = GOOD.replace("greet", "open").replace("properties", "additionalProperties: true, properties");
    const registry = createRegistry(await load(`export default [${GOOD}, ${open}];`));
    expect(registry.check("greet", { whom: "Ada" }, { templates: false })).toHaveLength(1);
    expect(registry.check("open", { whom: "Ada" }, { templates: false })).toEqual([]);
  });

  test.each([
    ["nothing", "undefined", {}],
    ["a promise", "Promise.resolve({ checkpoint: 1 })", { checkpoint: 1 }],
  ])("may return %s", async (_, result, expected) => {
    const [type] = await load(`export default { type: "a", cfg: { type: "object" }, execute: () => ${result} };`);
    expect(await type?.execute(nodeContext(), {})).toEqual(expected);
  });

  test.each([
    ["7", "must return { artifact?, checkpoint? }, not number."],
    ["[]", "must return { artifact?, checkpoint? }, not a list."],
    ["({ artefact: 1 })", "without `artefact`. Did you mean `artifact`?"],
  ])("fails for good if it returns %s", async (result, sentence) => {
    const [type] = await load(`export default { type: "a", cfg: { type: "object" }, execute: () => ${result} };`);
    const failure: unknown = await type?.execute(nodeContext(), {}).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(FinalFailure);
    expect((failure as Error).message).toContain(sentence);
  });
});

describe("a file that cannot be used is reported with its problem", () => {
  test("when it does not exist", async () => {
    expect(await refusalOf(loadUserTypes(["./none.mjs"], folder))).toBe(
      `./none.mjs: there is no such file (looked for ${join(folder, "none.mjs")}).`,
    );
  });

  test("when its extension is not that of JavaScript", async () => {
    expect(await refusalOf(load("", "own.ts"))).toBe("./own.ts: a file of node types ends in .js or .mjs.");
  });

  test("when it has a syntax error", async () => {
    expect(await refusalOf(load("export default {,};"))).toMatch(
      /^\.\/own\.mjs: it is not valid JavaScript: .+ `node --check \.\/own\.mjs` shows where\.$/,
    );
  });

  test("when it throws, or imports a missing file", async () => {
    expect(await refusalOf(load(`throw new Error("no luck");`))).toBe(
      "./own.mjs: it fails when it is loaded: no luck.",
    );
    expect(await refusalOf(load(`import "./gone.mjs"; export default ${GOOD};`, "other.mjs"))).toMatch(
      /^\.\/other\.mjs: it fails when it is loaded: .*gone\.mjs/,
    );
  });

  test.each([
    ["export const a = 1;", "it has no default export; write `export default { type, cfg, execute }`."],
    ["export default 1;", "the default export must be an object `{ type, cfg, execute }`."],
    [`export default [${GOOD}, null];`, "type 2 of its list must be an object `{ type, cfg, execute }`."],
    [
      `export default { ...${GOOD}, type: "Bad Name" };`,
      "the default export needs a `type`: its name, 1 to 64 of a-z, 0-9, `_` and `-`, a letter first.",
    ],
    [
      `export default { ...${GOOD}, cfg: { type: "array" } };`,
      'the default export needs a `cfg`: a JSON Schema such as `{ type: "object", properties: {} }`.',
    ],
    [
      `export default { ...${GOOD}, execute: 1 };`,
      "the default export needs `execute`: a function `(ctx, cfg) => ({ artifact })`.",
    ],
    [`export default { ...${GOOD}, summary: 1 };`, "the default export has a `summary` that is not text."],
    [
      `export default { ...${GOOD}, run: 1 };`,
      "the default export has the unknown field `run`; a node type has type, summary, cfg, execute.",
    ],
  ])("when its content is wrong: %s", async (text, sentence) => {
    expect(await refusalOf(load(text))).toBe(`./own.mjs: ${sentence}`);
  });

  test("together with the problems of all other files", async () => {
    await writeFile(join(folder, "empty.mjs"), "export default {};");
    const lines = (await refusalOf(loadUserTypes(["none.mjs", "empty.mjs"], folder))).split("\n");
    expect(lines.filter((line) => line.includes("empty.mjs"))).toHaveLength(3);
    expect(lines.filter((line) => line.includes("none.mjs"))).toHaveLength(1);
  });
});

describe("the examples", () => {
  const readYaml = async (name: string): Promise<unknown> => parse(await readFile(join("examples", name), "utf8"));

  async function exampleTypes(): Promise<UserType[]> {
    const config = (await readYaml("millrace.yaml")) as { chains: { nodeTypes: string[] } };
    return loadUserTypes(config.chains.nodeTypes, "examples");
  }

  /** Runs a type as the engine does: with the defaults of its schema. */
  async function run(type: string, given: unknown, ctx = nodeContext()) {
    const registry = createRegistry(await exampleTypes());
    const checked = registry.complete(type, given);
    if ("problems" in checked) throw new Error(JSON.stringify(checked.problems));
    return registry.get(type)?.execute(ctx, checked.cfg);
  }

  test.each(["nightly-orders.yaml", "check-file.yaml"])("%s is a chain whose nodes fit their types", async (name) => {
    const { dag } = (await readYaml(name)) as { dag: Dag };
    const fits = new Ajv({ strict: false }).compile(NodeSchema);
    for (const node of dag.nodes) expect(fits(node), JSON.stringify(fits.errors)).toBe(true);
    const ids = dag.nodes.map(({ id }) => id);
    expect(dag.nodes.flatMap(({ dependsOn = [] }) => dependsOn.filter((id) => !ids.includes(id)))).toEqual([]);
    const registry = createRegistry([noop, sleep, ...(await exampleTypes())]);
    const known = dag.nodes.filter(({ type }) => registry.get(type));
    expect(known.length).toBeGreaterThan(1);
    expect(known.flatMap(({ type, cfg }) => registry.check(type, cfg, { templates: true }))).toEqual([]);
  });

  test("row-count-check lets a small drop pass and fails for good on a large one", async () => {
    expect(await run("row-count-check", { rows: 80, previous: 100 })).toEqual({
      artifact: { rows: 80, previous: 100, dropPercent: 20 },
    });
    expect(await run("row-count-check", { rows: 5, previous: 0 })).toMatchObject({ artifact: { dropPercent: 0 } });
    const failure: unknown = await run("row-count-check", { rows: 79, previous: 100 }).catch((error: unknown) => error);
    expect((failure as Error).message).toBe("79 rows after 100, a drop of 21.0%; at most 20% is allowed.");
    expect(mayRetry(failure)).toBe(false);
  });

  test("check-jsonl reads the example file", async () => {
    const cfg = { file: "examples/data/orders.jsonl", required: ["id", "amount"] };
    expect(await run("check-jsonl", cfg)).toEqual({ artifact: { lines: 4 } });
    await expect(run("check-jsonl", { ...cfg, required: ["id", "price"] })).rejects.toThrow("Line 1 lacks price.");
  });

  test("check-jsonl continues from its checkpoint", async () => {
    const file = join(folder, "rows.jsonl");
    const row = `{"id":1,"text":"${"é".repeat(500)}"}\n`;
    const lines = 3_000; // More than two pieces.
    await writeFile(file, `${row.repeat(lines)}oops`);
    const first = nodeContext();
    await expect(run("check-jsonl", { file }, first)).rejects.toThrow(`Line ${lines + 1} is not JSON.`);
    const checkpoint = first.checkpoints.at(-1) as { lines: number };
    expect(checkpoint.lines).toBe(lines);
    expect(first.shares.length).toBeGreaterThan(2);

    await writeFile(file, `${row.repeat(lines)}{}`);
    const second = nodeContext({ checkpoint });
    expect(await run("check-jsonl", { file }, second)).toEqual({ artifact: { lines: lines + 1 } });
    expect(second.lines).toEqual([{ level: "info", text: `resuming after line ${lines}` }]);
  });

  test("check-jsonl stops with its run", async () => {
    const ctx = nodeContext({ signal: AbortSignal.abort() });
    await expect(run("check-jsonl", { file: "examples/data/orders.jsonl" }, ctx)).rejects.toThrow(/aborted/);
  });
});
