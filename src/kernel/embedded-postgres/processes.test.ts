/** Telling apart processes that have had the same id. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../../test/until.ts";
import { isAlive, runsPostgres, startTime, waitUntilGone } from "./processes.ts";
import { kill } from "./testing.fixture.ts";

function sleeper(): { pid: number; end: () => Promise<void> } {
  const child = spawn("sleep", ["600"]);
  onTestFinished(() => kill(child));
  return { pid: child.pid ?? 0, end: () => kill(child) };
}

describe("a process", () => {
  test("is alive until it ends", async () => {
    const { pid, end } = sleeper();
    expect(isAlive(pid)).toBe(true);
    expect(await waitUntilGone(pid, 0)).toBe(false);
    const gone = waitUntilGone(pid, 10_000);
    await end();
    expect(await gone).toBe(true);
  });

  test.runIf(process.platform === "linux")("that is a zombie counts as ended", async () => {
    // The shell starts a child, then becomes a program that never reaps its children.
    const parent = spawn("sh", ["-c", "sleep 600 & echo $!; exec sleep 600"], { stdio: ["ignore", "pipe", "ignore"] });
    onTestFinished(() => kill(parent));
    const [output]: Buffer[] = await once(parent.stdout, "data");
    const zombie = Number(output?.toString());
    const name = () => readFileSync(`/proc/${parent.pid}/comm`, "utf8").trim();
    await until(() => name() === "sleep", "the shell to become the program"); // It would reap the child before.
    process.kill(zombie);
    await until(() => !isAlive(zombie), "the zombie to be seen as such");
    expect(() => process.kill(zombie, 0)).not.toThrow();
  });

  test("has a start time that stays the same and differs from another's", async () => {
    const { pid } = sleeper();
    expect(startTime(pid)).toBe(startTime(pid));
    expect(startTime(pid)).not.toBe(startTime(process.pid));
    expect(startTime(process.pid)).toMatch(/\d/);
  });

  test("is a Postgres of a cluster only if its program and its folder match", () => {
    const { pid } = sleeper();
    expect(runsPostgres(pid, "600")).toBe("no");
    expect(runsPostgres(process.pid, "/data/postgres")).toBe("no");
  });
});
