/** `millrace chain apply` against a server that keeps one chain. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChainDetail } from "./api.ts";
import { type Asked, chainCli, startChainServer } from "./server.fixture.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-apply-"));
});
afterAll(() => rm(folder, { recursive: true }));

const DAG = {
  nodes: [
    { id: "a", type: "noop" },
    { id: "b", type: "noop", dependsOn: ["a"] },
  ],
};
const DAILY = `name: daily
description: Orders
nodes:
  - { type: noop, id: a }
  - { id: b, dependsOn: [a], type: noop }
`;

async function fileWith(text: string): Promise<string> {
  const path = join(folder, "daily.yaml");
  await writeFile(path, text);
  return path;
}

/** With the existing chain, if any; `changes` are the calls that were not GET. */
async function setUp(present?: Partial<ChainDetail>) {
  const server = await startChainServer();
  const chain: ChainDetail = {
    chainId: "c-1",
    name: "daily",
    description: "Orders",
    enabled: true,
    version: 3,
    dag: DAG,
    maxActiveRuns: null,
    runTimeoutMs: 60_000,
    ...present,
  };
  const changed = (fields: Partial<ChainDetail>) => [200, Object.assign(chain, fields)] as const;
  server.answers = {
    "GET /chains": ({ url }) => {
      const isThere = present !== undefined && url.endsWith("?name=daily");
      return [200, { items: isThere ? [chain] : [], page: 1, size: 20, total: isThere ? 1 : 0 }];
    },
    "GET /chains/c-1": [200, chain],
    "POST /chains": ({ url }) =>
      url.endsWith("?dryRun=true") ? [200, { valid: true, nodes: 2 }] : changed({ version: 1 }),
    "PUT /chains/c-1": () => changed({ version: 4 }),
    "POST /chains/c-1:enable": () => changed({ enabled: true }),
    "POST /chains/c-1:disable": () => changed({ enabled: false }),
  };
  const changes = () =>
    server.asked.filter(({ method }) => method !== "GET").map(({ method, url, body }: Asked) => [method, url, body]);
  return { server, changes, apply: (...words: string[]) => chainCli(server, "apply", ...words).ended };
}

describe("apply", () => {
  test("creates a chain that does not exist", async () => {
    const { apply, changes } = await setUp();
    expect(await apply(await fileWith(`${DAILY}enabled: true\n`))).toEqual({
      exit: 0,
      stdout: "Created daily, version 1.\n",
      stderr: "",
    });
    expect(changes()).toEqual([
      ["POST", "/api/v1/chains", { name: "daily", description: "Orders", enabled: true, dagJson: DAG }],
    ]);
  });

  test("changes nothing if the chain equals the file, whatever the order of keys", async () => {
    const { apply, changes } = await setUp({});
    expect(await apply(await fileWith(DAILY))).toMatchObject({
      exit: 0,
      stdout: "daily is unchanged, version 3.\n",
    });
    expect(changes()).toEqual([]);
  });

  test("updates what differs, with the present version, and keeps fields that the file does not have", async () => {
    const { apply, changes } = await setUp({ description: null });
    expect((await apply(await fileWith(DAILY))).stdout).toBe("Updated daily to version 4.\n");
    const kept = { maxActiveRuns: null, runTimeoutMs: 60_000 };
    const body = { name: "daily", description: "Orders", ...kept, dagJson: DAG, version: 3 };
    expect(changes()).toEqual([["PUT", "/api/v1/chains/c-1", body]]);
  });

  test("enables and disables only if the file says so", async () => {
    const off = await setUp({ enabled: false });
    expect((await off.apply(await fileWith(DAILY))).stdout).toBe("daily is unchanged, version 3. It is disabled.\n");
    const { apply, changes } = await setUp({ enabled: true });
    const { stdout } = await apply(await fileWith(`${DAILY}enabled: false\n`), "--json");
    expect(JSON.parse(stdout)).toEqual({
      outcome: "updated",
      name: "daily",
      chainId: "c-1",
      version: 3,
      enabled: false,
    });
    expect(changes()).toEqual([["POST", "/api/v1/chains/c-1:disable", undefined]]);
  });

  test.each([
    ["creation", undefined, "POST /api/v1/chains?dryRun=true"],
    ["update", {}, "PUT /api/v1/chains/c-1?dryRun=true"],
  ])("only checks the %s with --dry-run", async (_, present, call) => {
    const { apply, changes } = await setUp(present);
    expect((await apply(await fileWith(DAILY), "--dry-run")).stdout).toBe("daily is valid: 2 nodes.\n");
    expect(changes().map(([method, url]) => [method, url].join(" "))).toEqual([call]);
  });

  test("prints each problem of the DAG with its line", async () => {
    const { server, apply } = await setUp();
    const problems = [
      { path: "nodes[0].type", nodeId: "a", message: "There is no type `nop\u001b`." },
      { path: "nodes[1].dependsOn[0]", nodeId: "b", message: "It depends on `c`, which is not there." },
    ];
    const refusal = {
      error: "The DAG has 2 problems.",
      code: "DAG_INVALID",
      details: { problems },
    };
    server.answers["POST /chains"] = [400, refusal];
    const path = await fileWith(DAILY);
    expect(await apply(path)).toEqual({
      exit: 2,
      stdout: "",
      stderr: `${path}:4:7: a, type: There is no type \`nop\\u001b\`.\n${path}:5:26: b, dependsOn[0]: It depends on \`c\`, which is not there.\n`,
    });
    expect(JSON.parse((await apply(path, "--json")).stdout)).toEqual(refusal);
  });

  test("prints any other refusal, and reports a file that it cannot read", async () => {
    const { server, apply } = await setUp({ description: null });
    server.answers["PUT /chains/c-1"] = [409, { error: "It has changed.", code: "VERSION_CONFLICT" }];
    expect(await apply(await fileWith(DAILY))).toMatchObject({
      exit: 3,
      stderr: "It has changed. [VERSION_CONFLICT]\n",
    });
    const nowhere = await apply(join(folder, "nowhere.yaml"));
    expect(nowhere.exit).toBe(2);
    expect(nowhere.stderr).toMatch(/nowhere\.yaml cannot be read: ENOENT/);
  });
});
