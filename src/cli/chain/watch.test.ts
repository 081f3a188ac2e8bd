/** `millrace chain watch`, `show` and `logs --follow`, against a fake server that the test controls. */
import { describe, expect, test } from "vitest";
import { runCli } from "../../../test/cli-in-process.ts";
import { until } from "../../../test/until.ts";
import { at, nodeOf, runOf } from "./frame.fixture.ts";
import { chainCli, startChainServer } from "./server.fixture.ts";

const lines = (text: string) => text.split("\n").filter((line) => line !== "");

describe("watch", () => {
  test("prints a line for each change and exits with 0 when the run succeeds", async () => {
    const server = await startChainServer([nodeOf("a", [], "RUNNING"), nodeOf("b", ["a"])]);
    const watch = chainCli(server, "watch", "run-1");
    await server.followers(1);
    server.move([nodeOf("a", [], "SUCCESS"), nodeOf("b", ["a"], "RUNNING")]);
    server.move([nodeOf("b", ["a"], "RETRYING", { attempt: 2, lastError: "no\u001b[2J\ntable", endedAt: at(2) })]);
    server.move([nodeOf("b", ["a"], "RUNNING", { attempt: 2 })]);
    server.move([nodeOf("b", ["a"], "RUNNING", { attempt: 2, progress: 0.5 })]);
    server.move([nodeOf("b", ["a"], "SUCCESS", { attempt: 2, endedAt: at(90) })]);
    server.end({ status: "SUCCESS", endedAt: at(91) });
    expect(await watch.ended).toEqual({
      exit: 0,
      stdout: `run run-1 of daily RUNNING
a RUNNING
a SUCCESS 1.0s
b RUNNING
b RETRYING 2.0s: retry 2/3: no\\u001b[2J
b RUNNING: attempt 2/3
b SUCCESS 1:30
run run-1 of daily SUCCESS in 1:31 (2 success)
`,
      stderr: "",
    });
  });

  test("prints why a node was skipped, and the relevant line of an error", async () => {
    const server = await startChainServer([
      nodeOf("bad", [], "FAILED", {
        attempt: 2,
        maxAttempts: 2,
        lastError: "The command ended with exit code 7. Last lines of stderr:\nbroken\n",
      }),
      nodeOf("behind", ["bad"], "SKIPPED", { lastError: "a parent failed or was skipped" }),
    ]);
    server.run = runOf({ status: "FAILED", endedAt: at(3) });
    expect(lines((await chainCli(server, "watch", "run-1").ended).stdout).slice(0, 2)).toEqual([
      "bad FAILED 1.0s: attempt 2/2: The command ended with exit code 7: broken",
      "behind SKIPPED: a parent failed or was skipped",
    ]);
  });

  test("explains the symbols of the states in its help", async () => {
    const { stdout } = await runCli(["chain", "watch", "--help"]);
    expect(lines(stdout)).toContain(
      "Symbols: ○ pending, ● running, ✓ success, ✗ failed, ↻ retrying, ⊘ skipped, ■ stopped.",
    );
  });

  test.each([
    ["FAILED", 1],
    ["STOPPED", 8],
  ] as const)("exits with its own code when the run is %s", async (status, exit) => {
    const server = await startChainServer([nodeOf("a", [], status, { lastError: "no" })]);
    server.run = runOf({ status, endedAt: at(3), reason: "because" });
    const ended = await chainCli(server, "watch", "run-1").ended;
    expect(ended).toMatchObject({ exit, stderr: "" });
    expect(lines(ended.stdout).at(-1)).toBe(
      `run run-1 of daily ${status} in 3.0s (1 ${status.toLowerCase()}): because`,
    );
  });

  test("reconnects after a dropped connection, and shows the changes since then", async () => {
    const server = await startChainServer([nodeOf("a")]);
    const watch = chainCli(server, "watch", "run-1");
    await server.followers(1);
    server.send("id: 42\n");
    server.move([nodeOf("a", [], "RUNNING")]);
    await until(() => watch.stdout().includes("a RUNNING"), "its line");
    server.refuseStream = [503, { error: "Stopping.", code: "SHUTTING_DOWN" }];
    server.drop();
    await until(() => server.streams.length === 3, "two more tries");
    server.nodes = [nodeOf("a", [], "SUCCESS")];
    server.refuseStream = undefined;
    await server.followers(1);
    server.end({ status: "SUCCESS", endedAt: at(1) });
    const { exit, stdout, stderr } = await watch.ended;
    expect(exit).toBe(0);
    expect(lines(stdout).slice(1, 3)).toEqual(["a RUNNING", "a SUCCESS 1.0s"]);
    expect(stderr).toMatch(/^No Millrace answers at .* Trying again\.\n$/);
    expect(server.streams.map(({ headers }) => headers["last-event-id"]).slice(0, 2)).toEqual([undefined, "42"]);
  });

  test("ends if it is refused, or if the first connection fails", async () => {
    const server = await startChainServer();
    expect(await chainCli(server, "watch", "run-2").ended).toEqual({
      exit: 4,
      stdout: "",
      stderr: "There is no such run. [RUN_NOT_FOUND]\n",
    });
    const away = await runCli(["chain", "watch", "x"], { MILLRACE_URL: "http://127.0.0.1:1" });
    expect(away).toMatchObject({ exit: 6, stdout: "" });
  });

  test("prints each event with --json", async () => {
    const server = await startChainServer([nodeOf("a", [], "RUNNING")]);
    const watch = chainCli(server, "watch", "run-1", "--json");
    await server.followers(1);
    server.end({ status: "FAILED" });
    const { exit, stdout } = await watch.ended;
    expect(exit).toBe(1);
    const events = lines(stdout).map((line) => JSON.parse(line) as { event: string; data: unknown });
    expect(events.map(({ event }) => event)).toEqual(["run", "nodes", "run", "end"]);
    expect(events[1]?.data).toMatchObject([{ nodeId: "a", status: "RUNNING" }]);
    expect(events.at(-1)).toEqual({ event: "end", data: { status: "FAILED" } });
  });
});

test("show prints the whole frame once", async () => {
  const server = await startChainServer([nodeOf("z", [], "SUCCESS"), nodeOf("a", [], "FAILED", { lastError: "no" })]);
  server.run = runOf({ status: "FAILED", endedAt: at(3) });
  expect(await chainCli(server, "show", "run-1").ended).toEqual({
    exit: 0,
    stdout: `daily  FAILED  3.0s  run run-1
██████████████████████████████  2/2  1 success, 1 failed
✓ z     1.0s
✗ a     1.0s  no
`,
    stderr: "",
  });
  const { stdout } = await chainCli(server, "show", "run-1", "--json").ended;
  expect(JSON.parse(stdout)).toMatchObject({ run: { runId: "run-1" }, nodes: [{ nodeId: "z" }, { nodeId: "a" }] });
});
