/** Secrets that nodes use by name: the node gets them, and no table contains them. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";
import { until } from "../../../test/until.ts";
import type { NodeDef } from "../definitions/dag.ts";

const SECRET = 'open "sesame"/4711';
/** Longer than the excerpt of a response or a log line. */
const TOKEN = `eyJ${"abcdefghij-sesame".repeat(150)}`;

const database = useDatabase();
const millrace = useMillrace(database, {
  env: {
    MILLRACE_ROLES: "api,scheduler,worker",
    MILLRACE_SECRET_KEY: "1".repeat(64),
    MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true",
    MILLRACE_ALLOW_SHELL: "true",
  },
});
/** A service that repeats the token in its response, as some do in errors. */
let service: { url: string; received: string[] };

beforeAll(async () => {
  const received: string[] = [];
  const server = createServer((request, response) => {
    const token = String(request.headers["x-token"]);
    received.push(token);
    response.statusCode = request.url === "/refuse" ? 403 : 200;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ you: token, at: encodeURIComponent(token) }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  service = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
  return () => void server.close();
});

const call = (path: string): NodeDef => ({
  id: "call",
  type: "http",
  cfg: { url: `${service.url}${path}`, headers: { "x-token": "${secrets.TOKEN}" } },
});

interface Ended {
  status: string;
  nodes: { nodeId: string; status: string; lastError: string | null; artifact: unknown }[];
}

async function create(nodes: NodeDef[]): Promise<{ chainId: string }> {
  const name = `chain ${nodes[0]?.id} ${Math.random()}`;
  return (await millrace.api.post<{ chainId: string }>("/api/v1/chains", { name, dagJson: { nodes } })).body;
}

async function startRun(chainId: string): Promise<string> {
  return (await millrace.api.post<{ runId: string }>(`/api/v1/chains/${chainId}:start`, {})).body.runId;
}

const start = async (nodes: NodeDef[]) => startRun((await create(nodes)).chainId);

async function ended(runId: string): Promise<Ended> {
  const status = await until(async () => {
    const { body } = await millrace.api.get<{ status: string }>(`/api/v1/runs/${runId}`);
    return ["SUCCESS", "FAILED"].includes(body.status) && body.status;
  }, `run ${runId} to end`);
  return { status, nodes: (await millrace.api.get<Ended["nodes"]>(`/api/v1/runs/${runId}/nodes`)).body };
}

const set = (value: string) => millrace.api.put("/api/v1/secrets/TOKEN", { value });

/** Tables that contain the secret in any column, plain or encoded for JSON or a URL. */
async function rowsWith(secret: string): Promise<string[]> {
  const tables = await database.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await database.query<{ row: string }>(`select t::text as row from ${name} t`);
    const forms = [secret.slice(0, 20), encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), "sesame"];
    if (rows.some(({ row }) => forms.some((form) => row.includes(form)))) found.push(name);
  }
  return found;
}

test.each([
  ["a short one", SECRET],
  ["a long one", TOKEN],
])("a node gets the secret, %s, and it is masked in the output, so that no row contains it", async (_, secret) => {
  await set(secret);
  service.received.length = 0;
  const print: NodeDef = {
    id: "print",
    type: "shell",
    cfg: { command: 'echo "the token is $TOKEN"; echo "$TOKEN" >&2; exit 3', env: { TOKEN: "${secrets.TOKEN}" } },
  };
  const [called, refused, printed] = await Promise.all(
    [call("/"), call("/refuse"), print].map(async (node) => ended(await start([node]))),
  );
  expect(service.received).toEqual([secret, secret]);
  expect(called?.nodes).toMatchObject([{ status: "SUCCESS", artifact: { body: { you: "***", at: "***" } } }]);
  expect(refused?.nodes).toMatchObject([{ status: "FAILED", lastError: expect.stringContaining('{"you":"***') }]);
  expect(printed?.nodes).toMatchObject([{ status: "FAILED" }]);
  await until(
    async () => (await database.query("select from chains.job_run_log where line like 'the token is %'")).length > 0,
    "the log to be written",
  );
  expect(await rowsWith(secret)).toEqual([]);
});

test("each item of a map gets it when it runs, and no run contains it", async () => {
  await set(SECRET);
  service.received.length = 0;
  const { type, cfg = {} } = call("/");
  const each: NodeDef = { id: "each", type: "map", cfg: { over: [1, 2], node: { type, cfg } } };
  expect(await ended(await start([each]))).toMatchObject({ status: "SUCCESS" });
  expect(service.received).toEqual([SECRET, SECRET]);
  expect(await rowsWith(SECRET)).toEqual([]);
});

test("a node whose secret is missing fails with the reason, and a retry uses the one that was set meanwhile", async () => {
  const { chainId } = await create([{ ...call("/"), retry: { maxAttempts: 5 } }]);
  // Not by the API, which refuses while a chain names it: as in a database that was restored.
  await database.query("delete from kernel.named_secret where name = 'TOKEN'");
  const runId = await startRun(chainId);
  expect((await ended(runId)).nodes).toMatchObject([
    {
      status: "FAILED",
      attempt: 1,
      lastError: expect.stringMatching(/^there is no secret `TOKEN`\. /),
    },
  ]);
  service.received.length = 0;
  await set("another one");
  await millrace.api.post(`/api/v1/runs/${runId}:retry`, {});
  expect((await ended(runId)).status).toBe("SUCCESS");
  expect(service.received).toEqual(["another one"]);
});
