/** Signing in to the console on two real processes: a link works once, and a session works and ends on both. */
import { expect, test } from "vitest";
import { startCli } from "../cli.ts";
import { useDatabase } from "../database.ts";
import { type Server, startServer } from "../server.ts";
import { until } from "../until.ts";

const database = useDatabase();
const start = () => startServer({ database: { url: database.url }, env: { MILLRACE_ROLES: "api" } });

const signIn = ({ url }: Server, body: object) =>
  fetch(`${url}/api/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const cookieIn = (answer: Response) => (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] as string;
const who = async ({ url }: Server, cookie: string) => {
  const answer = await fetch(`${url}/api/v1/session`, { headers: { cookie } });
  const body = (await answer.json()) as { name?: string; code?: string };
  return body.name ?? body.code;
};

test("a link signs in exactly one of twenty who use it at once, whichever process they ask", async () => {
  const servers = [await start(), await start()] as const;
  const link = await until(() => /Console +(\S+)/.exec(servers[0].output())?.[1], "the link");
  const code = link.split("#")[1];
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => signIn(servers[n % 2] as Server, { code })));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(19);
  const cookie = cookieIn(answers.find(({ status }) => status === 200) as Response);
  for (const server of servers) expect(await who(server, cookie)).toBe("MILLRACE_ADMIN_KEY");
});

test("millrace console prints a link, and revoking its key ends the session and its streams in all processes", async () => {
  const servers = [await start(), await start()] as const;
  const [here, there] = servers;
  const { body: key } = await here.api.post("/api/v1/keys", { name: "Ann", scopes: ["admin"] });
  const printed = await startCli(["console"], { MILLRACE_URL: here.url, MILLRACE_KEY: String(key["key"]) }).ended;
  expect(printed).toMatchObject({ exit: 0, stderr: "" });
  const [, url, code] = /Console +(\S+)\/login#(\S+)\n/.exec(printed.stdout) ?? [];
  expect(url).toBe(here.url);
  const cookie = cookieIn(await signIn(there, { code }));
  for (const server of servers) expect(await who(server, cookie)).toBe("Ann");

  const dagJson = { nodes: [{ id: "a", type: "noop" }] };
  const { body: chain } = await here.api.post("/api/v1/chains", { name: "watched", dagJson });
  const { body: run } = await here.api.post(`/api/v1/chains/${String(chain["chainId"])}:start`);
  const streams = await Promise.all(
    servers.map((server) => fetch(`${server.url}/api/v1/runs/${String(run["runId"])}/stream`, { headers: { cookie } })),
  );
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  expect((await here.api.delete(`/api/v1/keys/${String(key["id"])}`)).status).toBe(200);
  for (const stream of streams) expect(await stream.text()).toContain("event: nodes"); // Its text is complete when it ends.
  for (const server of servers) {
    await until(async () => (await who(server, cookie)) === "SESSION_EXPIRED", "the session to end");
  }
});
