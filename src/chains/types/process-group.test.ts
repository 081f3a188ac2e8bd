import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { signal, until } from "../../../test/until.ts";
import { isAlive } from "../../kernel/embedded-postgres/processes.ts";
import { type GroupEnd, runInGroup } from "./process-group.ts";

interface Running {
  /** The first line that the command prints: ids of processes. */
  pids: Promise<number[]>;
  end: Promise<GroupEnd>;
  abort(): void;
}

function run(command: string, killAfterMs = 60_000): Running {
  const controller = new AbortController();
  const line = signal<string>();
  const end = runInGroup("/bin/sh", ["-c", command], {
    cwd: undefined,
    env: { PATH: process.env["PATH"] ?? "" },
    signal: controller.signal,
    killAfterMs,
    onStdout: line.resolve,
    onStderr: () => undefined,
  });
  const pids = line.promise.then((text) => text.trim().split(" ").map(Number));
  onTestFinished(async () => endAll(await Promise.race([pids, end.then(() => [])])));
  return { pids, end, abort: () => controller.abort() };
}

function endAll(pids: readonly number[]): void {
  for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
}

describe("a program in its own process group", () => {
  test("returns its exit code", async () => {
    expect(await run("exit 7").end).toEqual({ code: 7, signal: null, leftOthers: false });
  });

  test("returns the signal that ended it", async () => {
    expect(await run("kill -9 $$").end).toEqual({ code: null, signal: "SIGKILL", leftOthers: false });
  });

  test("gets SIGTERM when it is aborted, together with its children", async () => {
    const { pids, end, abort } = run(`sleep 600 & trap 'exit 9' TERM; echo $$ $!; wait`);
    const started = await pids;
    abort();
    expect((await end).code).toBe(9);
    expect(started.map(isAlive)).toEqual([false, false]);
  });

  test("is killed when it ignores SIGTERM", async () => {
    const { pids, end, abort } = run(`trap '' TERM; sleep 600 & echo $$ $!; while :; do wait; done`, 100);
    const started = await pids;
    abort();
    expect((await end).signal).toBe("SIGKILL");
    expect(started.map(isAlive)).toEqual([false, false]);
  });

  test("is killed completely when only a child ignores SIGTERM", async () => {
    const { pids, end, abort } = run(`(trap '' TERM; exec sleep 600) & echo $$ $!; wait`, 100);
    const started = await pids;
    abort();
    expect((await end).signal).toBe("SIGTERM");
    expect(started.map(isAlive)).toEqual([false, false]);
  });

  test("has leftover children ended when it exits by itself", async () => {
    const { pids, end } = run(`(trap '' TERM; exec sleep 600) & echo $!`, 100);
    const started = await pids;
    expect(await end).toEqual({ code: 0, signal: null, leftOthers: true });
    expect(started.map(isAlive)).toEqual([false]);
  });

  test("may leave a child that ends shortly after it", async () => {
    const { end } = run(`(sleep 0.1; echo 1) &`);
    expect(await end).toEqual({ code: 0, signal: null, leftOthers: false });
  });

  test("does not block the caller when a process leaves the group and keeps the pipes open", async () => {
    const { pids, end } = run(`exec setsid sh -c 'echo $$; exec sleep 600' &`);
    const [escaped = 0] = await pids;
    expect((await end).code).toBe(0);
    expect(isAlive(escaped)).toBe(true);
    endAll([escaped]);
  });

  test("ends when Millrace is killed", async () => {
    const millrace = fork(
      fileURLToPath(new URL("process-group.fixture.ts", import.meta.url)),
      [`sleep 600 & echo $$ $!; wait`],
      { execArgv: ["--import", import.meta.resolve("tsx")] },
    );
    const [text]: string[] = await once(millrace, "message");
    const started = (text ?? "").trim().split(" ").map(Number);
    onTestFinished(() => endAll(started));
    expect(started.map(isAlive)).toEqual([true, true]);
    millrace.kill("SIGKILL");
    await until(() => started.every((pid) => !isAlive(pid)), "the command to end");
  });

  test("that cannot be started rejects with the system's error", async () => {
    const options = {
      cwd: "/no/such/folder",
      env: {},
      signal: new AbortController().signal,
      killAfterMs: 0,
      onStdout: () => undefined,
      onStderr: () => undefined,
    };
    await expect(runInGroup("/bin/sh", ["-c", "exit"], options)).rejects.toMatchObject({ code: "ENOENT" });
  });
});
