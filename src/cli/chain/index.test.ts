/** The simple `millrace chain` commands, against a fake of the API. */
import { describe, expect, test } from "vitest";
import { signal, until } from "../../../test/until.ts";
import { at, nodeOf, runOf } from "./frame.fixture.ts";
import { type ChainServer, chainCli, startChainServer } from "./server.fixture.ts";

const DAILY = {
  chainId: "c-1",
  name: "daily",
  enabled: true,
  version: 3,
  nodeCount: 5,
  lastRun: { runId: "run-1", status: "FAILED", createdAt: at(0) },
};
const pageOf = (...items: unknown[]) => ({ items, page: 1, size: 20, total: items.length });

/** The server has the chain `daily`, with the id c-1. */
async function setUp() {
  const server = await startChainServer();
  server.answers = {
    "GET /chains": ({ url }) => [200, /\?name=(?!daily$)/.test(url) ? pageOf() : pageOf(DAILY)],
    "GET /chains/c-1": [200, DAILY],
    "GET /chains/nope": [400, { error: "There is no such chain.", code: "CHAIN_NOT_FOUND" }],
    "POST /chains/c-1:start": [200, { runId: "run-1" }],
  };
  return { server, chain: (...words: string[]) => chainCli(server, ...words).ended };
}

const lastOf = ({ asked }: ChainServer) => {
  const { method, url, body } = asked.at(-1) ?? {};
  return [`${method} ${url}`, body];
};

describe("start", () => {
  test("prints the id of the run and nothing else", async () => {
    const { server, chain } = await setUp();
    expect(await chain("start", "daily")).toEqual({ exit: 0, stdout: "run-1\n", stderr: "" });
    expect(lastOf(server)).toEqual(["POST /api/v1/chains/c-1:start", {}]);
    expect((await chain("start", "daily", "--json")).stdout).toBe('{"runId":"run-1"}\n');
  });

  test("accepts the chain's id, and sends the fields of the run", async () => {
    const { server, chain } = await setUp();
    const flags = ["--params", '{"n":1}', "--op-time", "2025-01-01", "--priority", "-5", "--idempotency-key", "k 1"];
    expect((await chain("start", "c-1", ...flags)).stdout).toBe("run-1\n");
    const body = { params: { n: 1 }, opTime: "2025-01-01", priority: -5 };
    expect(lastOf(server)).toEqual(["POST /api/v1/chains/c-1:start", body]);
    expect(server.asked.at(-1)?.headers["idempotency-key"]).toBe("k 1");
  });

  test("follows the run with --watch", async () => {
    const { server } = await setUp();
    server.nodes = [nodeOf("a", [], "RUNNING")];
    const start = chainCli(server, "start", "daily", "--watch");
    await server.followers(1);
    server.end({ status: "STOPPED", endedAt: at(2) });
    const { exit, stdout } = await start.ended;
    expect(exit).toBe(8);
    expect(stdout.split("\n").slice(0, 3)).toEqual(["run-1", "run run-1 of daily RUNNING", "a RUNNING"]);
  });

  test("with --watch --json prints the run's id as the first event", async () => {
    const { server } = await setUp();
    server.run = runOf({ status: "SUCCESS", endedAt: at(2) });
    const { exit, stdout } = await chainCli(server, "start", "daily", "--watch", "--json").ended;
    expect(exit).toBe(0);
    const [first, ...others] = stdout.trim().split("\n");
    expect(first).toBe('{"event":"start","data":{"runId":"run-1"}}');
    expect(others.map((text) => Object.keys(JSON.parse(text)))).toEqual(others.map(() => ["event", "data"]));
  });

  test("explains a wrong name or wrong parameters", async () => {
    const { chain } = await setUp();
    expect(await chain("start", "nope")).toEqual({
      exit: 4,
      stdout: "",
      stderr: "There is no chain with the name or id `nope`. See `millrace chain ls`.\n",
    });
    expect(await chain("start", "daily", "--params", "{n:1}")).toMatchObject({
      exit: 2,
      stderr: '--params is `{n:1}`. Accepted: JSON, such as \'{"region":"eu"}\'.\n',
    });
  });
});

test("start refuses a priority that is not a number", async () => {
  const { chain } = await setUp();
  expect(await chain("start", "daily", "--priority", "high")).toMatchObject({
    exit: 2,
    stderr: "--priority is `high`. Accepted: a whole number.\n",
  });
});

test.each([["watch"], ["show"], ["logs"], ["logs", "--follow"], ["stop"], ["resume"], ["retry"]])(
  "%s tells a chain's name from a run",
  async (...words) => {
    const { server, chain } = await setUp();
    for (const path of ["POST /runs/daily:stop", "POST /runs/daily:resume", "POST /runs/daily:retry"]) {
      server.answers[path] = [400, { error: "There is no such run.", code: "RUN_NOT_FOUND" }];
    }
    server.answers["GET /runs/daily/stream"] = [400, { error: "There is no such run.", code: "RUN_NOT_FOUND" }];
    expect(await chain(...words, "daily")).toEqual({
      exit: 4,
      stdout: "",
      stderr: "`daily` is a chain, not a run: see `millrace chain runs daily`.\n",
    });
    expect((await chain("show", "nope")).stderr).toBe("There is no such run. [RUN_NOT_FOUND]\n");
  },
);

describe("stop, resume, retry and complete", () => {
  test("stop makes one call, and with --wait returns when the run is stopped", async () => {
    const { server, chain } = await setUp();
    server.answers["POST /runs/run-1:stop"] = [200, { runId: "run-1", status: "STOPPING" }];
    const asked = await chain("stop", "run-1", "--reason", "too late");
    expect(asked).toMatchObject({ exit: 0, stdout: "Run run-1: STOPPING.\n" });
    expect(lastOf(server)[1]).toEqual({ reason: "too late" });
    const waiting = chainCli(server, "stop", "run-1", "--wait");
    await server.followers(1);
    server.end({ status: "STOPPED" });
    expect(await waiting.ended).toEqual({ exit: 0, stdout: "Run run-1: STOPPED.\n", stderr: "" });
    server.run = runOf({ status: "SUCCESS" });
    expect(await chain("stop", "run-1", "--wait")).toMatchObject({ exit: 3, stdout: "Run run-1: SUCCESS.\n" });
  });

  test("a run that cannot be resumed is a wrong state", async () => {
    const { server, chain } = await setUp();
    server.answers["POST /runs/run-1:resume"] = [200, { runId: "run-1", status: "RUNNING" }];
    expect(await chain("resume", "run-1")).toMatchObject({ exit: 0, stdout: "Run run-1: RUNNING.\n" });
    server.answers["POST /runs/run-1:resume"] = [409, { error: "It runs.", code: "RUN_WRONG_STATE" }];
    expect(await chain("resume", "run-1")).toMatchObject({ exit: 3, stderr: "It runs. [RUN_WRONG_STATE]\n" });
  });

  test("retry runs a whole run again, or shows what would run", async () => {
    const { server, chain } = await setUp();
    const nodes = [
      { nodeId: "load", from: "FAILED", to: "RETRYING" },
      { nodeId: "publish", from: "SKIPPED", to: "PENDING" },
    ];
    server.answers["POST /runs/run-1:retry"] = [200, { runId: "run-1", status: "RUNNING", nodes }];
    expect((await chain("retry", "run-1")).stdout).toBe("Run run-1: retrying 2 nodes.\n");
    expect(lastOf(server)).toEqual(["POST /api/v1/runs/run-1:retry", {}]);
    const { stdout } = await chain("retry", "run-1", "--dry-run");
    expect(stdout).toBe("NODE     IS       BECOMES\nload     FAILED   RETRYING\npublish  SKIPPED  PENDING\n");
    expect(lastOf(server)[0]).toBe("POST /api/v1/runs/run-1:retry?dryRun=true");
    server.answers["POST /runs/run-1:retry"] = [200, { runId: "run-1", status: "SUCCESS", nodes: [] }];
    expect((await chain("retry", "run-1", "--dry-run")).stdout).toBe("Nothing would run.\n");
  });

  test("retry explains in its help what it runs again", async () => {
    const { chain } = await setUp();
    expect((await chain("retry", "--help")).stdout.replaceAll("\n", " ")).toContain(
      "runs all failed and stopped nodes again, and their skipped descendants",
    );
  });

  test("retry runs one node again, with --downstream also its descendants", async () => {
    const { server, chain } = await setUp();
    const reply = { runId: "run-1", nodeId: "a/b", status: "RETRYING", attempt: 2, nodes: [] };
    server.answers["POST /runs/run-1/nodes/a%2Fb:retry"] = [200, reply];
    const { stdout } = await chain("retry", "run-1", "a/b", "--downstream", "--reason", "it is fixed");
    expect(stdout).toBe("Run run-1: retrying a/b.\n");
    expect(lastOf(server)).toEqual([
      "POST /api/v1/runs/run-1/nodes/a%2Fb:retry?downstream=true",
      { reason: "it is fixed" },
    ]);
    expect(await chain("retry", "run-1", "--downstream")).toMatchObject({ exit: 2 });
  });

  test("complete sends an artifact, if it is JSON", async () => {
    const { server, chain } = await setUp();
    const reply = { runId: "run-1", nodeId: "load", status: "SUCCESS", attempt: 1 };
    server.answers["POST /runs/run-1/nodes/load:complete"] = [200, reply];
    const { stdout } = await chain("complete", "run-1", "load", "--artifact", '{"rows":12}', "--reason", "by hand");
    expect(stdout).toBe("load of run run-1: SUCCESS.\n");
    expect(lastOf(server)[1]).toEqual({ artifactJson: '{"rows":12}', reason: "by hand" });
    expect(await chain("complete", "run-1", "load", "--artifact", "rows")).toMatchObject({ exit: 2, stdout: "" });
  });
});

describe("ls and runs", () => {
  test("ls shows each chain with its last run", async () => {
    const { server, chain } = await setUp();
    const daily = { ...DAILY, lastRun: { ...DAILY.lastRun, createdAt: "2025-01-01T01:00:00.123456+01:00" } };
    const fresh = { ...DAILY, name: "fresh\u001b", enabled: false, version: 1, lastRun: undefined };
    server.answers["GET /chains"] = [200, { ...pageOf(daily, fresh), total: 50 }];
    expect((await chain("ls", "--q", "d&x")).stdout).toBe(
      `NAME         ENABLED  VERSION  NODES  LAST RUN  STATUS  LAST RUN AT
daily        yes      3        5      run-1     FAILED  2025-01-01T00:00:00Z
fresh\\u001b  no       1        5

Page 1 of 3, 50 chains.
`,
    );
    expect(lastOf(server)[0]).toBe("GET /api/v1/chains?keyword=d%26x");
    server.answers["GET /chains"] = [200, pageOf()];
    expect((await chain("ls")).stdout).toBe("There are no such chains.\n");
  });

  test("runs shows those of one chain or of all", async () => {
    const { server, chain } = await setUp();
    const run = runOf({ status: "FAILED", endedAt: at(75), opTime: "2025-01-01", reason: "load failed\nmore" });
    server.answers["GET /runs"] = [200, pageOf(run)];
    expect((await chain("runs", "daily", "--status", "failed", "--op-time", "2025-01-01")).stdout).toBe(
      `RUN    CHAIN  STATUS  OPTIME      STARTED               DURATION  REASON
run-1  daily  FAILED  2025-01-01  2025-01-01T00:00:00Z  1:15      load failed
`,
    );
    expect(lastOf(server)[0]).toBe("GET /api/v1/runs?chainId=c-1&status=FAILED&opTime=2025-01-01");
    await chain("runs");
    expect(lastOf(server)[0]).toBe("GET /api/v1/runs");
  });
});

describe("logs", () => {
  const line = (id: number, text: string, attempt = 1, level = "info") => ({
    id: String(id),
    at: at(id),
    attempt,
    level,
    text,
  });

  function keep(server: ChainServer, nodeId: string, log: ReturnType<typeof line>[]): void {
    server.answers[`GET /runs/run-1/nodes/${nodeId}/logs`] = ({ url }) => {
      const query = new URL(url, "http://x").searchParams;
      const items = log
        .filter(({ id }) => Number(id) > Number(query.get("after")))
        .slice(0, Number(query.get("limit")));
      return [200, { items, next: items.at(-1)?.id ?? query.get("after") }];
    };
  }

  test("prints one node's log, with control characters escaped", async () => {
    const { server, chain } = await setUp();
    keep(server, "a", [line(1, "one\ntwo\n"), line(2, "\u001b[2J", 2, "error"), line(3, "three", 2)]);
    expect(await chain("logs", "run-1", "a", "--attempt", "2")).toEqual({
      exit: 0,
      stdout: `2025-01-01T00:00:01Z a info one
2025-01-01T00:00:01Z a info two
2025-01-01T00:00:02Z a#2 error \\u001b[2J
2025-01-01T00:00:03Z a#2 info three
`,
      stderr: "",
    });
    expect(lastOf(server)[0]).toBe("GET /api/v1/runs/run-1/nodes/a/logs?attempt=2&limit=1000");
  });

  test("prints all pages of a long log, each line once", async () => {
    const { server, chain } = await setUp();
    keep(
      server,
      "a",
      Array.from({ length: 2_500 }, (_, index) => line(index + 1, `line ${index + 1}.`)),
    );
    const { stdout } = await chain("logs", "run-1", "a");
    const lines = stdout.trim().split("\n");
    expect([lines.length, new Set(lines).size, lines.at(-1)?.slice(21)]).toEqual([2_500, 2_500, "a info line 2500."]);
  });

  test("prints the logs of all nodes that started, in that order", async () => {
    const { server, chain } = await setUp();
    server.nodes = [
      nodeOf("z", [], "SUCCESS", { startedAt: at(5) }),
      nodeOf("a", [], "SUCCESS", { startedAt: at(1) }),
      nodeOf("never"),
    ];
    keep(server, "a", [line(1, "first")]);
    keep(server, "z", [line(2, "second")]);
    const { stdout } = await chain("logs", "run-1", "--json");
    expect(
      stdout
        .trim()
        .split("\n")
        .map((text) => JSON.parse(text)),
    ).toMatchObject([
      { nodeId: "a", text: "first" },
      { nodeId: "z", text: "second" },
    ]);
  });

  test("with --follow prints all lines until the run ends, also if the server is busy", async () => {
    const { server } = await setUp();
    const log = [line(1, "one")];
    server.nodes = [nodeOf("a", [], "RUNNING"), nodeOf("b", ["a"])];
    keep(server, "a", log);
    keep(server, "b", [line(9, "from b")]);
    const logs = chainCli(server, "logs", "run-1", "--follow");
    await until(() => logs.stdout().includes("one"), "the first line");
    const away = signal();
    const present = server.answers["GET /runs/run-1/nodes/a/logs"];
    server.answers["GET /runs/run-1/nodes/a/logs"] = () => {
      away.resolve();
      return [503, { error: "Busy.", code: "OVERLOADED" }];
    };
    await away.promise;
    Object.assign(server.answers, { "GET /runs/run-1/nodes/a/logs": present });
    log.push(line(2, "two"));
    await until(() => logs.stdout().includes("two"), "the second line");
    log.push(line(3, "last"));
    server.move([nodeOf("a", [], "SUCCESS"), nodeOf("b", ["a"], "SUCCESS")]);
    server.end({ status: "SUCCESS" });
    const { exit, stdout } = await logs.ended;
    expect(exit).toBe(0);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((text) => text.slice(21)),
    ).toEqual(["a info one", "a info two", "a info last", "b info from b"]);
  });
});
