import { Type } from "typebox";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import type { Db } from "../../kernel/data/db.ts";
import type { OpenedSecret } from "../../kernel/secrets/named-secrets.ts";
import type { Nodes } from "../engine/book.fixture.ts";
import { createRunCache } from "../engine/run-cache.ts";
import { addRun } from "../run.fixture.ts";
import type { NewRun } from "../store/runs.ts";
import { map } from "../types/map.ts";
import { nodeType } from "../types/node-type.ts";
import { noop } from "../types/noop.ts";
import { createRegistry } from "../types/registry.ts";
import { sleep } from "../types/sleep.ts";
import { type PreparedNode, prepare, render } from "./prepare.ts";

const database = useDatabase();
const call = nodeType({
  type: "call",
  summary: "",
  cfg: Type.Object({ url: Type.String(), times: Type.Integer({ default: 3, maximum: 9 }) }),
  execute: async () => ({}),
});
const registry = createRegistry([noop, sleep, map, call]);
/** The names of each read. */
let secretsRead: string[][] = [];
const secrets = {
  open: async (names: readonly string[]) => {
    secretsRead.push([...names]);
    return new Map<string, OpenedSecret>([
      ["TOKEN", { value: "open sesame" }],
      ["OLD", { trouble: "It was sealed under another key." }],
    ]);
  },
};
beforeEach(() => {
  secretsRead = [];
});

interface Preparation {
  nodes: Nodes;
  /** The node to prepare. */
  nodeId: string;
  attempt?: number;
  run?: Partial<NewRun>;
  results?: Record<string, unknown>;
  checkpoint?: unknown;
}

async function prepareOne(given: Preparation): Promise<{ item: PreparedNode; asked: string[] }> {
  const { nodes, nodeId, attempt = 1, run, results = {}, checkpoint } = given;
  const runId = await addRun(database, nodes, run);
  for (const [id, artifact] of Object.entries(results)) {
    await database.query(
      "update chains.job_run_node set status = 'SUCCESS', ended_at = now(), artifact_json = $3 where run_id = $1 and node_id = $2",
      [runId, id, JSON.stringify(artifact)],
    );
  }
  if (checkpoint !== undefined) {
    await database.query("insert into chains.job_run_checkpoint values ($1, $2, $3)", [
      runId,
      nodeId,
      JSON.stringify(checkpoint),
    ]);
  }
  const asked: string[] = [];
  const rows: Db["rows"] = (statement, values) => (asked.push(statement.name), database.db.rows(statement, values));
  const db = { ...database.db, rows };
  const claimed = { run_id: runId, node_id: nodeId, fence: "1", attempt, returned: 0 };
  const [item] = await prepare({ db, runCache: createRunCache(), registry, secrets }, [claimed]);
  if (!item) throw new Error("nothing was prepared");
  return { item, asked: asked.filter((name) => !name.startsWith("chains.run.")) };
}
async function rendered(given: Preparation) {
  return render((await prepareOne(given)).item, registry);
}
const cfgOf = async (cfg: Record<string, unknown>, given: Partial<Preparation> = {}) => {
  const result = await rendered({ nodes: { x: { type: "call", cfg } }, nodeId: "x", ...given });
  return "cfg" in result ? result.cfg : result;
};

describe("prepare", () => {
  test("reads the results of the parents for a node that uses them", async () => {
    const { item, asked } = await prepareOne({
      nodes: { a: [], b: [], x: { type: "sleep", dependsOn: ["a", "b"], cfg: { ms: "${nodes.a.artifact.ms}" } } },
      nodeId: "x",
      results: { a: { ms: 5 } },
    });
    expect(item.parents).toEqual({
      a: { status: "SUCCESS", artifact: { ms: 5 } },
      b: { status: "PENDING", artifact: null },
    });
    expect(asked).toEqual(["chains.node.results"]);
  });

  test.each<[string, Nodes[string]]>([
    ["does not read its parents, and has no templates", { type: "sleep", dependsOn: ["a"], cfg: { ms: 1 } }],
    ["has no parents", { type: "call", cfg: { url: "x" } }],
  ])("reads nothing for a first attempt that %s", async (_, x) => {
    const { item, asked } = await prepareOne({ nodes: { a: [], x }, nodeId: "x" });
    expect(asked).toEqual([]);
    expect(item).toMatchObject({ parents: {}, checkpoint: null });
  });

  test("reads the parents of a node whose `if` uses them", async () => {
    const x = { dependsOn: ["a"], if: 'nodes.a.status == "SUCCESS"' };
    expect((await prepareOne({ nodes: { a: [], x }, nodeId: "x" })).asked).toEqual(["chains.node.results"]);
  });

  test("reads the parents of a type that may use them itself", async () => {
    const x = { type: "call", dependsOn: ["a"], cfg: { url: "x" } };
    const { item } = await prepareOne({ nodes: { a: [], x }, nodeId: "x", results: { a: [1] } });
    expect(item.parents).toEqual({ a: { status: "SUCCESS", artifact: [1] } });
  });

  test("reads the checkpoint for every attempt but the first", async () => {
    const given = { nodes: { x: [] }, nodeId: "x", checkpoint: { offset: 9 } };
    expect((await prepareOne({ ...given, attempt: 2 })).item.checkpoint).toEqual({ offset: 9 });
    expect((await prepareOne(given)).item.checkpoint).toBeNull();
  });

  test("takes two statements for nodes of several runs", async () => {
    const x = { type: "call", dependsOn: ["a"], cfg: { url: "x" } };
    const runIds = [await addRun(database, { a: [], x }), await addRun(database, { a: [], x })];
    const asked: string[] = [];
    const rows: Db["rows"] = (statement, values) => (asked.push(statement.name), database.db.rows(statement, values));
    const claimed = runIds.map((run_id) => ({ run_id, node_id: "x", fence: "1", attempt: 2, returned: 0 }));
    const prepared = await prepare(
      { db: { ...database.db, rows }, runCache: createRunCache(), registry, secrets },
      claimed,
    );
    expect(prepared.map(({ run_id }) => run_id)).toEqual(runIds);
    expect(asked.filter((name) => !name.startsWith("chains.run."))).toEqual([
      "chains.checkpoint.read",
      "chains.node.results",
    ]);
  });

  test("throws for a node that does not exist", async () => {
    const runId = await addRun(database, { a: [] });
    const claimed = [{ run_id: runId, node_id: "ghost", fence: "1", attempt: 1, returned: 0 }];
    const deps = { db: database.db, runCache: createRunCache(), registry, secrets };
    await expect(prepare(deps, claimed)).rejects.toThrow(`node ghost of run ${runId} was claimed but does not exist`);
  });
});

describe("the rendered cfg of a node", () => {
  test("has its templates rendered, and the defaults of its type", async () => {
    const run = { params: { host: "x.org", n: 2 }, op_time: "2026010100" };
    expect(await cfgOf({ url: "https://${params.host}/${opTime}?n=${params.n + 1}" }, { run })).toEqual({
      url: "https://x.org/2026010100?n=3",
      times: 3,
    });
    expect(await cfgOf({ url: "u", times: "${params.n}" }, { run })).toEqual({ url: "u", times: 2 });
  });

  test("can use the run and the node", async () => {
    const given = { nodes: { x: { type: "call", cfg: { url: "${run.id}/${node.id}/${node.attempt}" } } }, nodeId: "x" };
    const { item } = await prepareOne({ ...given, attempt: 4 });
    expect(render(item, registry)).toMatchObject({ cfg: { url: `${item.run_id}/x/4` } });
  });

  test.each(["$${HOME}", "a $${b} c"])(
    "renders `%s` with one dollar, with or without a template next to it",
    async (url) => {
      const written = url.replace("$$", "$");
      expect(await cfgOf({ url })).toMatchObject({ url: written });
      expect(await cfgOf({ url: `${url}\${params.x}` }, { run: { params: { x: 1 } } })).toMatchObject({
        url: `${written}1`,
      });
    },
  );

  test("does not render the node of a map", async () => {
    const node = { type: "call", cfg: { url: "${item}", times: "$${x}" } };
    const cfg = { over: "${params.list}", node };
    const given = { nodes: { x: { type: "map", cfg } }, nodeId: "x", run: { params: { list: [1, 2] } } };
    expect(await rendered(given)).toMatchObject({ cfg: { over: [1, 2], node } });
    const constant = { nodes: { x: { type: "map", cfg: { over: [3], node } } }, nodeId: "x" };
    expect(await rendered(constant)).toMatchObject({ cfg: { over: [3], node } });
  });

  test("is checked again after rendering", async () => {
    await expect(cfgOf({ url: "u", times: "${params.n}" }, { run: { params: { n: 10 } } })).rejects.toMatchObject({
      message: "its cfg is not valid: times: `cfg.times` is 10. Accepted: a whole number of at most 9.",
      retry: false,
    });
  });

  test("fails if a value is missing", async () => {
    await expect(cfgOf({ url: "${params.nothing}" })).rejects.toThrow(
      "`params.nothing` failed: there is no `params.nothing`.",
    );
  });

  test("fails for a type that this process does not have", async () => {
    await expect(rendered({ nodes: { x: { type: "elsewhere" } }, nodeId: "x" })).rejects.toMatchObject({
      message: "this process has no node type `elsewhere`",
      retry: false,
    });
  });
});

describe("the `if` of a node", () => {
  const withIf = (condition: string) =>
    rendered({ nodes: { x: { if: condition } }, nodeId: "x", run: { params: { n: 3, text: "yes" } } });

  test("decides whether it runs, with the reason if not", async () => {
    expect(await withIf("params.n == 3")).toMatchObject({ cfg: {} });
    expect(await withIf("params.n > 3")).toEqual({ skippedBecause: "its `if` is false: params.n > 3" });
  });

  test.each(["params.n", "params.text", "null"])(
    "that is `%s` is neither true nor false, and fails for good",
    async (condition) => {
      await expect(withIf(condition)).rejects.toMatchObject({
        message: `its \`if\` is neither true nor false: ${condition}`,
        retry: false,
      });
    },
  );

  test("is evaluated before the templates, which may fail", async () => {
    const x = { type: "call", if: "has(params.url)", cfg: { url: "${params.url}" } };
    expect(await rendered({ nodes: { x }, nodeId: "x" })).toEqual({
      skippedBecause: "its `if` is false: has(params.url)",
    });
  });
});

describe("the secrets of a node", () => {
  test("are rendered where its cfg names them", async () => {
    expect(await cfgOf({ url: "https://x.org?token=${secrets.TOKEN}" })).toMatchObject({
      url: "https://x.org?token=open sesame",
    });
    expect(secretsRead).toEqual([["TOKEN"]]);
  });

  test("are not read for a node that names none", async () => {
    await cfgOf({ url: "${run.id}" });
    expect(secretsRead).toEqual([]);
  });

  test("are read together for many nodes", async () => {
    const nodes = {
      a: { type: "call", cfg: { url: "${secrets.TOKEN}" } },
      b: { type: "call", cfg: { url: "${secrets.OLD}" } },
    };
    const run_id = await addRun(database, nodes);
    const claimed = ["a", "b", "a"].map((node_id) => ({ run_id, node_id, fence: "1", attempt: 1, returned: 0 }));
    await prepare({ db: database.db, runCache: createRunCache(), registry, secrets }, claimed);
    expect(secretsRead).toEqual([["TOKEN", "OLD"]]);
  });

  test.each([
    [
      "NONE",
      "there is no secret `NONE`. `millrace secrets list` shows the existing ones; `millrace secrets set NONE` creates it",
    ],
    ["OLD", "secret `OLD`: It was sealed under another key."],
  ])("fail with the reason if they cannot be used: %s", async (name, message) => {
    await expect(cfgOf({ url: `\${secrets.${name}}` })).rejects.toThrow(message);
  });
});
