/** `millrace harvest apply|validate|diff` against the real server. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cliFor } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";

const database = useDatabase();
const server = useMillrace(database, { env: { MILLRACE_HARVEST_ALLOW_PRIVATE: "localhost:7501" } });
const harvest = (...words: string[]) => cliFor(server)("harvest", ...words);
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-harvest-"));
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(async () => {
  await database.query("delete from harvest.reg_provenance");
});

const SHOP = `source: shop
name: Orders of the shop
baseUrl: https://api.example.org
endpoints:
  orders:
    path: /orders
    http:
      query: { since: "\${window.from}", until: "\${window.to}", offset: "\${page.offset}", limit: "\${page.size}" }
    pagination: { type: OFFSET, pageSize: 100, orderBy: updated asc }
    window:
      { watermarkKey: updated, granularity: PT1S, align: min, minWindow: PT1M, maxWindow: P1D, supportsUpdatedSince: true }
    response: { itemsPath: $.orders, idPath: $.id, updatedAtPath: $.updated, totalPath: $.total }
    rateLimit: { refillRatePerSec: 10 }
schedules:
  hourly: { cron: "5 * * * *" }
`;
const MARKET = SHOP.replace("source: shop", "source: market");

async function fileWith(text: string, name = "shop.yaml"): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}
const sources = async () =>
  (
    await database.query<{ provenance_code: string }>("select provenance_code from harvest.reg_provenance order by 1")
  ).map((row) => row.provenance_code);

describe("apply", () => {
  test("creates a source, leaves it alone, and shows what it changes", async () => {
    expect(await harvest("apply", await fileWith(SHOP))).toEqual({
      exit: 0,
      stdout: "Created shop, revision 1.\n",
      stderr: "",
    });
    expect((await harvest("apply", await fileWith(SHOP))).stdout).toBe("shop is unchanged, revision 1.\n");
    const changed = SHOP.replace("pageSize: 100", "pageSize: 50").replace(
      "schedules:\n",
      "schedules:\n  daily: { cron: '@daily' }\n",
    );
    expect((await harvest("apply", await fileWith(changed))).stdout).toBe(`Changed shop to revision 2:
  endpoints.orders.pagination.pageSize: 100 -> 50
  schedules.daily: none -> endpoint: orders, operation: HARVEST, cron: @daily, timeZone: UTC
`);
  });

  test("points a source elsewhere, and says when it is back", async () => {
    const file = await fileWith(SHOP);
    await harvest("apply", file);
    expect(
      (await harvest("apply", file, "--base-url", "http://localhost:7501")).stdout,
    ).toBe(`Changed shop to revision 2:
  baseUrlOverride: none -> http://localhost:7501
  Its address is http://localhost:7501, not that of the file.
Warning: ${file}:3:1: baseUrl: http://localhost:7501/ stands in for it. Requests and credentials go over http, which everyone on the way can read.
`);
    expect((await harvest("apply", file)).stdout).toBe(`Changed shop to revision 3:
  baseUrlOverride: http://localhost:7501 -> none
  Its address is https://api.example.org again.
`);
    const refused = await harvest("apply", file, "--base-url", "http://localhost:7502");
    expect(refused).toMatchObject({ exit: 2, stdout: "" });
    expect(refused.stderr).toMatch(
      /shop\.yaml:3:1: baseUrl: http:\/\/localhost:7502\/ stands in for it\. It is not https/,
    );
  });

  test("with --dry-run only shows what it would change", async () => {
    const file = await fileWith(SHOP);
    expect((await harvest("apply", file, "--dry-run")).stdout).toBe("shop would be created.\n");
    expect(await sources()).toEqual([]);
  });

  test("names the place of every problem, and applies no file if one has any", async () => {
    const good = await fileWith(MARKET, "market.yaml");
    const bad = await fileWith(
      SHOP.replace("type: OFFSET", "type: PAGES")
        .replace('cron: "5 * * * *"', "cron: often")
        .replace("path: /orders", "paths: /orders"),
    );
    const { exit, stdout, stderr } = await harvest("apply", good, bad);
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
    expect(stderr).toMatch(/shop\.yaml:6:5: `endpoints\.orders\.paths` is not a field/);
    expect(stderr).toMatch(
      /shop\.yaml:9:19: `endpoints\.orders\.pagination\.type` is `PAGES`\. Accepted: one of OFFSET/,
    );
    expect(await sources()).toEqual([]);

    const meaning = await fileWith(SHOP.replace("type: OFFSET, ", "").replace('"5 * * * *"', "often"));
    const refused = await harvest("apply", meaning);
    expect(refused.stderr).toMatch(/shop\.yaml:9:5: endpoints\.orders\.pagination\.type: /);
    expect(refused.stderr).toMatch(/shop\.yaml:15:13: schedules\.hourly\.cron: /);
    expect(JSON.parse((await harvest("apply", meaning, "--json")).stdout)).toMatchObject({
      code: "DEFINITION_INVALID",
    });
  });

  test("applies several files", async () => {
    const files = [await fileWith(SHOP), await fileWith(MARKET, "market.yaml")];
    expect((await harvest("apply", ...files)).stdout).toBe("Created shop, revision 1.\nCreated market, revision 1.\n");
  });

  test("warns of a secret that does not exist yet", async () => {
    const file = await fileWith(`${SHOP}credentials:\n  key: { secret: SHOP_KEY }\n`);
    expect((await harvest("apply", file)).stdout).toMatch(
      /^Created shop, revision 1\.\nWarning: .*shop\.yaml:17:10: credentials\.key\.secret: There is no secret `SHOP_KEY` yet/,
    );
  });

  test.each([
    ["source: [", /shop\.yaml:1:\d+: this is not valid YAML/],
    ["name: Orders", /shop\.yaml:1:1: `source` is missing/],
    [`${SHOP}x: .inf\n`, /shop\.yaml: Cannot write .*x/],
  ])("refuses the file %j", async (text, sentence) => {
    const { exit, stderr } = await harvest("apply", await fileWith(text));
    expect(exit).toBe(2);
    expect(stderr).toMatch(sentence);
  });
});

test("validate lets the server check the files, and changes nothing", async () => {
  const good = await fileWith(MARKET, "market.yaml");
  expect(await harvest("validate", good)).toEqual({
    exit: 0,
    stdout: `${good} is valid: 1 endpoint to harvest.\n`,
    stderr: "",
  });
  const bad = await fileWith(SHOP.replace("type: OFFSET, ", ""));
  const { exit, stdout } = await harvest("validate", good, bad);
  expect(exit).toBe(2);
  expect(stdout).toContain(`${good} is valid`);
  expect(stdout).toMatch(/shop\.yaml:9:5: endpoints\.orders\.pagination\.type: /);
  expect(await sources()).toEqual([]);
});

test("sources lists what was applied, and a name that is like none of them leads to it", async () => {
  await harvest("apply", await fileWith(SHOP));
  const { exit, stdout } = await harvest("sources");
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^SOURCE .*\nshop +Orders of the shop +https:\/\/api\.example\.org +1 +1 +1 /);
  expect((await harvest("sources", "crossref")).stdout).toBe("There are no such sources.\n");
  expect(await harvest("run", "crossref")).toMatchObject({
    exit: 4,
    stderr: "There is no source crossref. `millrace harvest sources` lists those that there are. [SOURCE_NOT_FOUND]\n",
  });
});

test.each([["status"], ["tasks"], ["schedules"], ["cursors"], ["records"]])(
  "%s --source with a name that is like one leads to it, and so do the words of a list's other flags",
  async (list) => {
    await harvest("apply", await fileWith(SHOP));
    expect(await harvest(list, "--source", "shpo")).toMatchObject({
      exit: 4,
      stderr: "There is no source shpo. Did you mean `shop`? [SOURCE_NOT_FOUND]\n",
    });
    expect((await harvest(list, "--source", "shop")).exit).toBe(0);
    const word = {
      status: ["--status", "complet"],
      tasks: ["--status", "failled"],
      cursors: ["--operation", "harvets"],
    }[list];
    if (word) expect((await harvest(list, ...word)).stderr).toMatch(/did you mean `(COMPLETE|FAILED|HARVEST)`\?/);
  },
);

test("diff shows the changed fields, and exits with 1 if there are any", async () => {
  const file = await fileWith(SHOP);
  expect(await harvest("diff", file)).toMatchObject({ exit: 1, stdout: "shop does not exist yet.\n" });
  await harvest("apply", file);
  expect(await harvest("diff", file)).toMatchObject({ exit: 0, stdout: "shop is unchanged.\n" });
  const changed = await fileWith(SHOP.replace("path: /orders", "path: /v2/orders"), "changed.yaml");
  expect(await harvest("diff", changed)).toMatchObject({
    exit: 1,
    stdout: "shop differs:\n  endpoints.orders.path: /orders -> /v2/orders\n",
  });
});

test("the examples of the documentation and of the help are valid", async () => {
  const docs = await readFile(new URL("../../../docs/harvest.md", import.meta.url), "utf8");
  const shown = (await harvest("apply", "--help")).stdout;
  const examples = [/```yaml\n([^]*?)```/.exec(docs)?.[1], /\n\n( {2}source: [^]*?)\n\n/.exec(shown)?.[1]];
  for (const example of examples) {
    const { exit, stdout } = await harvest("validate", await fileWith(example ?? "", "example.yaml"));
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: expect.stringMatching(/^\S+ is valid: 1 endpoint to harvest\.\n$/),
    });
  }
});
