/** Those who send lineage, as engines and Gravitino do: they post events over HTTP until they are acknowledged. */

import { sourceOf } from "../src/lineage/graph/stories.fixture.ts";
import type { GraphInNames, TestLineage } from "../src/lineage/lineage.fixture.ts";
import type { Answer, Api, Json } from "./client.ts";
import type { TestDatabase } from "./database.ts";
import { until } from "./until.ts";

type Source = ReturnType<typeof sourceOf>;

export interface TestTenant {
  id: number;
  /** Bound to the tenant, for reading and writing. */
  keys: Record<Source, string>;
}

/** READY unless `fields` say otherwise. */
export async function makeTenant(api: Api, id: number, fields: Json = {}): Promise<TestTenant> {
  const tenant = { id, code: `t${id}`, name: `Tenant ${id}`, state: "READY", ...fields };
  const made = await api.post("/api/v1/lineage/tenants", tenant);
  if (made.status !== 201) throw new Error(`no tenant ${id}: ${JSON.stringify(made.body)}`);
  const key = async (source: Source) => {
    const scopes = ["lineage:read", "lineage:write"];
    const { body } = await api.post("/api/v1/keys", { name: `${source} of ${id}`, scopes, tenantId: id, source });
    return String(body["key"]);
  };
  return { id, keys: { GRAVITINO: await key("GRAVITINO"), COMPUTE_ENGINE: await key("COMPUTE_ENGINE") } };
}

/** A text goes as it is. */
export async function postEvent(
  url: string,
  key: string,
  event: Json | string,
  path = "/api/v1/lineage",
): Promise<Answer<Json>> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: typeof event === "string" ? event : JSON.stringify(event),
  });
  return { status: response.status, body: (await response.json()) as Json, headers: response.headers };
}

/** The times of a story: the first event at ten o'clock, each other one a millisecond after the one before. */
export function inTime(events: readonly Json[]): Json[] {
  const start = Date.parse("2026-03-01T10:00:00Z");
  return events.map((event, index) => ({ ...event, eventTime: new Date(start + index).toISOString() }));
}

export interface LineageLoad {
  /** What was acknowledged: the id of each event, by its text. */
  acknowledged: ReadonlyMap<string, string>;
  /** Answers that no client should ever get. */
  odd: readonly string[];
  /** How often a client had to try again. */
  refused(): number;
  /** How often it did so because there was no answer at all: whether the event was taken is not known then. */
  unanswered(): number;
  slowestMs(): number;
  /** From now on the events go to these servers. */
  aimAt(urls: readonly string[]): void;
  /** When so many more are acknowledged, or all of them. */
  goesOn(count: number): Promise<void>;
  /** When all are. */
  done(): Promise<void>;
}

export interface LoadOptions {
  tenant: TestTenant;
  events: readonly Json[];
  clients: number;
  urls: readonly string[];
}

/** A server may be suspended for as long as the rest takes to go on, and answer only then that the event is to be sent again. */
const SENDING_MS_MAX = 180_000;
/** The transaction of a suspended server holds up the others for 15 s, on a machine that may be busy. */
const GOING_ON_MS_MAX = 60_000;

/** Each client sends one event after the other, each until it is acknowledged, as clients that do not lose events do. */
export function startLineageLoad({ tenant, events, clients, urls }: LoadOptions): LineageLoad {
  const acknowledged = new Map<string, string>();
  const odd: string[] = [];
  let targets = urls;
  let next = 0;
  let tries = 0;
  let refused = 0;
  let unanswered = 0;
  let slowestMs = 0;

  async function send(body: string, key: string): Promise<boolean> {
    tries += 1;
    const url = targets[tries % targets.length] ?? "";
    const started = performance.now();
    const answer = await postEvent(url, key, body).catch(() => undefined);
    if (answer) slowestMs = Math.max(slowestMs, performance.now() - started);
    else unanswered += 1;
    if (answer?.status === 201) {
      acknowledged.set(body, String(answer.body["id"]));
      return true;
    }
    refused += 1;
    const isRefusal = answer?.status === 503 && answer.headers.has("retry-after");
    if (answer && !isRefusal) odd.push(`${answer.status} ${JSON.stringify(answer.body)}`);
    return false;
  }

  async function client(): Promise<void> {
    for (let event = events[next++]; event; event = events[next++]) {
      const body = JSON.stringify(event);
      const key = tenant.keys[sourceOf(event)];
      await until(() => send(body, key), "an event to be acknowledged", SENDING_MS_MAX);
    }
  }

  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => {}); // Told by `done`.
  return {
    acknowledged,
    odd,
    refused: () => refused,
    unanswered: () => unanswered,
    slowestMs: () => slowestMs,
    aimAt: (given) => void (targets = given),
    async goesOn(count) {
      const goal = Math.min(events.length, acknowledged.size + count);
      await until(() => acknowledged.size >= goal, `${goal} acknowledged events`, GOING_ON_MS_MAX);
    },
    done: async () => void (await running),
  };
}

/** What is wrong with the events of a tenant: each that was acknowledged has to be there once, word for word, and applied. */
export async function contradictions(
  database: Pick<TestDatabase, "query">,
  tenantId: number,
  acknowledged: ReadonlyMap<string, string>,
): Promise<string[]> {
  const rows = await database.query<{ id: string; body: string; state: string }>(
    "select id::text, event::text as body, apply_state as state from lineage.lineage_events where tenant_id = $1",
    [tenantId],
  );
  const stored = new Map(rows.map((row) => [row.id, row]));
  const wrong = rows.filter(({ state }) => state !== "APPLIED").map(({ id, state }) => `event ${id} is ${state}`);
  if (rows.length !== acknowledged.size) wrong.push(`${rows.length} events for ${acknowledged.size} acknowledged`);
  for (const [body, id] of acknowledged) {
    if (stored.get(id)?.body !== body) wrong.push(`event ${id} is ${stored.get(id)?.body ?? "lost"}`);
  }
  return wrong;
}

/** The graph of a new tenant that is told these events one by one, in the order of time. */
export async function graphOf(lineage: TestLineage, events: readonly Json[]): Promise<GraphInNames> {
  const tenant = await lineage.tenant();
  for (const event of events) await lineage.send(tenant, event, { source: sourceOf(event) });
  return lineage.graph(tenant);
}
