/** Commands in the test's process: each has its own environment and output, and the tests keep theirs. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { EXIT } from "../src/cli/common/exit-codes.ts";
import { pipeline } from "../src/cli/pipeline/index.ts";
import { runCli, startCommand } from "./cli-in-process.ts";
import { barrierOf } from "./until.ts";

/** Answers so many calls at once, each with its key. */
async function startServer(calls: number): Promise<string> {
  const together = barrierOf(calls);
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    await together();
    const reply = { error: `You are ${request.headers.authorization}.`, code: "FORBIDDEN" };
    response.writeHead(403, { "content-type": "application/json" }).end(JSON.stringify(reply));
  }
  const server = createServer((...call) => void answer(...call)).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("two commands at once have their own environment and output", async () => {
  const url = await startServer(2);
  const [first, second] = await Promise.all(
    ["one", "two"].map((key) => runCli(["pipeline", "ls", "--json"], { MILLRACE_URL: url, MILLRACE_KEY: key })),
  );
  const endOf = (key: string) => ({
    exit: EXIT.notAllowed,
    stdout: `{"error":"You are Bearer ${key}.","code":"FORBIDDEN"}\n`,
    stderr: `You are Bearer ${key}. [FORBIDDEN]\n`,
  });
  expect([first, second]).toEqual([endOf("one"), endOf("two")]);
});

test("outside of a command `process` is the real one, also while one runs", async () => {
  const { env, stdout, stderr, exit } = process;
  const listeners = process.listenerCount("SIGINT");
  const running = startCommand(["chain", "watch", "x"], { MILLRACE_URL: "http://127.0.0.1:1", ONLY_HERE: "1" });
  expect(process.env["ONLY_HERE"]).toBeUndefined();
  expect([process.env, process.stdout, process.stderr, process.exit]).toEqual([env, stdout, stderr, exit]);
  expect(await running.ended).toMatchObject({ exit: EXIT.unreachable, stdout: "" });
  expect(process.listenerCount("SIGINT")).toBe(listeners);
});

test("a command that calls process.exit is an error that says what to do", async () => {
  const summary = Object.getOwnPropertyDescriptor(pipeline, "summary") as PropertyDescriptor;
  Object.defineProperty(pipeline, "summary", { configurable: true, get: () => process.exit(3) });
  onTestFinished(() => void Object.defineProperty(pipeline, "summary", summary));
  await expect(runCli(["pipeline", "--help"])).rejects.toThrow(
    "`millrace pipeline --help` called process.exit(3), which would end the tests: run it with startCli.",
  );
});
