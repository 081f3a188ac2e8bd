/** `millrace lineage send` with all kinds of files, and its report of refused events. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cliFor, runCli } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";
import { dataset, runEvent } from "../../lineage/events.fixture.ts";

const BODY_LIMIT = 20_000;
const database = useDatabase();
const server = useMillrace(database, { lineage: { eventBytesMax: BODY_LIMIT } });
let folder: string;
let env: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-send-"));
  await server.api.post("/api/v1/lineage/tenants", { id: 7, code: "acme", name: "Acme Inc.", state: "READY" });
  const { body } = await server.api.post<{ key: string }>("/api/v1/keys", {
    name: "spark",
    scopes: ["lineage:write"],
    tenantId: 7,
    source: "COMPUTE_ENGINE",
  });
  env = { MILLRACE_URL: server.url, MILLRACE_KEY: body.key };
});
afterAll(() => rm(folder, { recursive: true }));

const send = (...words: string[]) => runCli(["lineage", "send", ...words], env);

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const event = (name: string, more = "") =>
  JSON.stringify(runEvent({ jobName: name, outputs: [dataset("file", `/w/${name}${more}`)] }));
const bodies = async (job: string) =>
  (
    await database.query<{ event: string }>(
      "select event::text from lineage.lineage_events where job_name like $1 order by id",
      [job],
    )
  ).map((row) => row.event);

test("one event, an array and JSON lines are accepted, and each event is stored unchanged", async () => {
  const pretty = JSON.stringify(JSON.parse(event("pretty")), null, 2).replace(
    '"inputs": []',
    '"big": 9007199254740993',
  );
  const files = await Promise.all([
    file("one.json", pretty),
    file("array.json", `[\n ${event("array1")},\n ${event("array2")}\n]\n`),
    file("lines.jsonl", `${event("line1")}\n${event("line2")}\n`),
  ]);
  expect(await send(...files)).toEqual({ exit: 0, stdout: "Accepted: 5 of 5 events.\n", stderr: "" });
  expect(await bodies("pretty")).toEqual([pretty]);
  expect(await bodies("array_")).toHaveLength(2);
});

test("the same event again is accepted but stored once", async () => {
  const path = await file("input.jsonl", event("input"));
  for (const _ of [1, 2]) {
    expect(await send(path, "--json")).toEqual({
      exit: 0,
      stdout: '{"received":1,"successful":1,"failed":0,"failedEvents":[]}\n',
      stderr: "",
    });
  }
  expect(await bodies("input")).toHaveLength(1);
});

test("refused events are listed with place and reason, and the others are accepted", async () => {
  const path = await file("bad.jsonl", `{"a":1}\n${event("good")}\n{nope}\n${event("long", "x".repeat(BODY_LIMIT))}\n`);
  const { exit, stdout, stderr } = await send(path);
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: "" });
  const lines = stdout.split("\n");
  expect(lines).toEqual([
    expect.stringMatching(/^EVENT +REASON$/),
    expect.stringMatching(/bad\.jsonl:1 +The event has neither \/run nor \/job nor \/dataset\.$/),
    expect.stringMatching(/bad\.jsonl:3 +It is not JSON: /),
    expect.stringMatching(/bad\.jsonl:4 +The body is larger than the limit of 20000 bytes\./),
    "",
    "Accepted: 1 of 4 events.",
    "",
  ]);
  expect(await bodies("good")).toHaveLength(1);
});

test("a batch that is too large for the server is split", async () => {
  const names = Array.from({ length: 1_100 }, (_, index) => `many${index}`);
  const path = await file("many.jsonl", names.map((name) => event(name)).join("\n"));
  expect((await send(path)).stdout).toBe("Accepted: 1100 of 1100 events.\n");
  expect(await bodies("many%")).toHaveLength(1_100);
});

test("of many refused events the first are shown", async () => {
  const path = await file("none.jsonl", '{"a":1}\n'.repeat(30));
  const { stdout } = await send(path);
  expect(stdout.match(/none\.jsonl:\d+ /g)).toHaveLength(20);
  expect(stdout).toMatch(/\n\(and 10 more\)\n\nAccepted: 0 of 30 events\.\n$/);
});

test("missing files, folders and texts without events are reported", async () => {
  const good = await file("late.json", event("late"));
  expect(await send(good, join(folder, "no.json"))).toMatchObject({
    exit: 2,
    stdout: "",
    stderr: expect.stringMatching(/no\.json cannot be read \(ENOENT\)\.\n$/),
  });
  expect(await bodies("late")).toEqual([]);
  expect((await send(folder)).stderr).toMatch(/is a folder\. Name files instead\.\n$/);
  expect((await send(await file("empty.json", "\n"))).stdout).toBe("There are no events.\n");
  expect(await send(await file("text.txt", `${event("early")}\nhello`))).toMatchObject({
    exit: 2,
    stderr: expect.stringMatching(/text\.txt:2: an event must begin here with `\{`, not `h`\.\n$/),
  });
});

test("a key without the scope, a tenant that is not syncing and a missing server end it at once", async () => {
  const path = await file("refused.json", event("refused"));
  expect((await runCli(["lineage", "send", path], { ...env, MILLRACE_KEY: "mlr_none" })).exit).toBe(5);
  expect((await send(path, "--baseline", "7")).exit).toBe(3);
  expect((await send(path, "--baseline", "8")).exit).toBe(4);
  expect((await runCli(["lineage", "send", path], { ...env, MILLRACE_URL: "http://127.0.0.1:1" })).exit).toBe(6);
  const unbound = await cliFor(server)("lineage", "send", path);
  expect(unbound.stdout).toContain("this key is bound to no tenant");
});
