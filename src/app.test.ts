/** A module defined here is started, called and stopped only by adding it to a list. */
import { Type } from "typebox";
import { describe, expect, onTestFinished, test } from "vitest";
import { api } from "../test/client.ts";
import { useDatabase } from "../test/database.ts";
import { ADMIN_KEY } from "../test/millrace.ts";
import { start } from "./app.ts";
import type { Catalogue } from "./kernel/catalogue.ts";
import { wholeNumber } from "./kernel/config/kinds.ts";
import { loadConfig } from "./kernel/config/load.ts";
import { errorsOf } from "./kernel/errors.ts";
import { under } from "./kernel/http/server.ts";
import { loadModules, type Module, type ModuleContext, moduleList, type Opened } from "./kernel/module.ts";
import { createService } from "./kernel/work/service.ts";

const database = useDatabase();

const CATALOGUE = {
  name: "notes",
  settings: {
    max: {
      env: "MILLRACE_NOTES_MAX",
      flag: "notes-max",
      kind: wholeNumber({ min: 1, max: 10 }),
      default: "3",
      description: "Notes that are kept.",
    },
  },
  errors: { NOTE_NOT_FOUND: { status: 404, sentence: "There is no note {id}." } },
  metrics: { millrace_notes_read_total: { kind: "counter", help: "Notes that were read.", labels: ["outcome"] } },
  scopes: { "note:read": { forTenants: true } },
  tags: { notes: "Notes" },
  keySources: ["NOTEBOOK"],
} as const satisfies Catalogue;
const noteError = errorsOf(CATALOGUE.errors);
const Section = Type.Object({ greeting: Type.String({ default: "hello" }) }, { additionalProperties: false });

/** The calls, in order. */
type Calls = string[];

function notesModule(calls: Calls) {
  async function open({
    section,
    settings,
    metrics,
    log,
    onRun,
    onClose,
  }: ModuleContext<typeof CATALOGUE, { greeting: string }>): Promise<Opened<{ greet(): string }>> {
    onClose("notes", () => calls.push("closed"));
    const service = createService({ name: "notes.tidy", intervalMs: 60_000, log, onRun, runOnce: async () => ({}) });
    return {
      api: { greet: () => section.greeting },
      checks: [{ name: "notes", look: async () => ({ verdict: "ok", found: `At most ${settings.max}.` }) }],
      services: {
        scheduler: [{ name: "absent", start: () => calls.push("started without its role"), stop: async () => {} }],
        worker: [
          {
            name: service.name,
            start() {
              calls.push("started");
              service.start();
            },
            async stop() {
              await service.stop();
              calls.push("stopped");
            },
          },
        ],
      },
      routes: (http) =>
        under(http, "/api/v1/notes", (routes) => {
          const config = { scope: "note:read" };
          routes.get("/:id", { config, schema: { tags: ["notes"], summary: "Read" } }, async ({ params }) => {
            const { id } = params as { id: string };
            metrics.count("millrace_notes_read_total", { outcome: id === "1" ? "found" : "missing" });
            if (id !== "1") throw noteError("NOTE_NOT_FOUND", { id });
            return { text: section.greeting };
          });
        }),
      endWaits: () => calls.push("waits ended"),
      drain: async () => calls.push("drained"),
    };
  }
  return { ...CATALOGUE, load: async () => ({ section: Section, open }) } as const satisfies Module;
}

/** A module that uses the one before it. */
function readersModule(calls: Calls) {
  async function open(
    { onClose }: ModuleContext<{ name: "readers" }, object>,
    { notes }: { notes: { greet(): string } },
  ): Promise<Opened> {
    calls.push(`readers got ${notes.greet()}`);
    onClose("readers", () => calls.push("readers closed"));
    return { api: {} };
  }
  const section = Type.Object({}, { additionalProperties: false });
  return { name: "readers", load: async () => ({ section, open }) } as const satisfies Module;
}

async function startWith(calls: Calls, env: Record<string, string> = {}) {
  const modules = moduleList(notesModule(calls), readersModule(calls));
  const config = loadConfig({
    env: {
      DATABASE_URL: database.url,
      MILLRACE_PORT: "0",
      MILLRACE_ADMIN_KEY: ADMIN_KEY,
      MILLRACE_LOG_LEVEL: "fatal",
      MILLRACE_ROLES: "api,worker",
      ...env,
    },
    flags: {},
    cwd: import.meta.dirname,
    modules: await loadModules(modules),
  });
  const millrace = await start({ config, cwd: import.meta.dirname, print: () => {}, modules });
  onTestFinished(() => millrace.stop());
  return { ...millrace, api: api(millrace.url, ADMIN_KEY) };
}

test("is opened with the APIs of those before it, started in its role, and stopped in the reverse order", async () => {
  const calls: Calls = [];
  const millrace = await startWith(calls);
  expect(calls).toEqual(["readers got hello", "started"]);
  calls.length = 0;
  await millrace.stop();
  expect(calls).toEqual(["waits ended", "stopped", "drained", "readers closed", "closed"]);
});

describe("a module in the list", () => {
  test("answers at its routes, with its own errors", async () => {
    const { api: client } = await startWith([]);
    expect(await client.get("/api/v1/notes/1")).toMatchObject({ status: 200, body: { text: "hello" } });
    expect(await client.get("/api/v1/notes/2")).toMatchObject({
      status: 404,
      body: { error: "There is no note 2.", code: "NOTE_NOT_FOUND", details: { id: "2" } },
    });
  });

  test("protects its routes with its own scope, which keys can have and tenants can use", async () => {
    const { url, api: client } = await startWith([]);
    const made = await client.post("/api/v1/keys", {
      name: "n",
      scopes: ["note:read"],
      tenantId: 1,
      source: "NOTEBOOK",
    });
    const key = String((made.body as Record<string, unknown>)["key"]);
    expect((await api(url, key).get("/api/v1/notes/1")).status).toBe(200);
    expect((await api(url, key).get("/api/v1/doctor")).body).toMatchObject({
      error: "This key may not do that: it is bound to a tenant and reaches note only.",
    });
    const unknown = await client.post("/api/v1/keys", { name: "n", scopes: ["note:write"] });
    expect(unknown).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
  });

  test("is in the doctor, the metrics and the OpenAPI document", async () => {
    const { url, api: client } = await startWith([], { MILLRACE_NOTES_MAX: "7" });
    await client.get("/api/v1/notes/1");
    const { findings } = (await client.get("/api/v1/doctor")).body as { findings: unknown[] };
    expect(findings).toContainEqual({ check: "notes", verdict: "ok", found: "At most 7." });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain('millrace_notes_read_total{outcome="found"} 1');
    const described = (await (await fetch(`${url}/openapi.json`)).json()) as { tags: unknown[]; paths: object };
    expect(described.tags[0]).toEqual({ name: "notes", description: "Notes" });
    expect(Object.keys(described.paths)).toContain("/api/v1/notes/{id}");
  });

  test("has its settings checked like all others", async () => {
    await expect(startWith([], { MILLRACE_NOTES_MAX: "11" })).rejects.toThrow(
      "MILLRACE_NOTES_MAX is `11`. Accepted: a whole number from 1 to 10.",
    );
    await expect(startWith([], { MILLRACE_NOTE_MAX: "1" })).rejects.toThrow("Did you mean `MILLRACE_NOTES_MAX`?");
    await expect(startWith([], { MILLRACE_ANONYMOUS_SCOPES: "note:raed" })).rejects.toThrow(
      "Did you mean `note:read`?",
    );
  });

  test("that uses an undeclared scope or tag stops the start", async () => {
    const open = (config: { scope: string }, tags: string[]) => async (): Promise<Opened> => ({
      api: {},
      routes: (http) =>
        under(http, "/x", (routes) => void routes.get("/", { config, schema: { tags } }, async () => 1)),
    });
    const load = (code: ReturnType<typeof open>) => async () => ({ section: Section, open: code });
    const config = loadConfig({
      env: {
        DATABASE_URL: database.url,
        MILLRACE_PORT: "0",
        MILLRACE_ADMIN_KEY: ADMIN_KEY,
        MILLRACE_LOG_LEVEL: "fatal",
      },
      flags: {},
      cwd: import.meta.dirname,
      modules: [],
    });
    const starting = (code: ReturnType<typeof open>) =>
      start({ config, cwd: import.meta.dirname, print: () => {}, modules: [{ name: "odd", load: load(code) }] });
    await expect(starting(open({ scope: "odd:read" }, []))).rejects.toThrow(
      "route /x names the scope odd:read, which is in no catalogue",
    );
    await expect(starting(open({ scope: "admin" }, ["odd"]))).rejects.toThrow(
      "route /x has the tag odd, which is in no catalogue",
    );
  });
});
