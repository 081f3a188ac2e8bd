import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Static } from "typebox";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { signal } from "../../../test/until.ts";
import { isAlive } from "../../kernel/embedded-postgres/processes.ts";
import { nodeContext } from "./node-context.fixture.ts";
import { mayRetry } from "./node-type.ts";
import { shell } from "./shell.ts";

type Cfg = Static<typeof shell.cfg>;

const run = (command: string, more: Omit<Cfg, "command"> = {}, ctx = nodeContext()) =>
  shell.execute(ctx, { command, ...more });

async function failureOf(work: Promise<unknown>): Promise<Error> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error("it did not fail");
  return error;
}

describe("a command", () => {
  test("logs stdout as info and stderr as warnings", async () => {
    const ctx = nodeContext();
    expect(await run("echo one; echo two >&2; printf 'thr\\303\\251e'", {}, ctx)).toEqual({});
    expect(ctx.lines.filter(({ level }) => level === "info").map(({ text }) => text)).toEqual(["one", "thrée"]);
    expect(ctx.lines.filter(({ level }) => level === "warn").map(({ text }) => text)).toEqual(["two"]);
  });

  test("is read until its output is closed", async () => {
    expect(await run("setsid sh -c 'sleep 0.1; echo late' &", { artifact: "text" })).toEqual({ artifact: "late" });
  });

  test("has long lines truncated in the log", async () => {
    const ctx = nodeContext();
    await run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end", {}, ctx);
    expect(ctx.lines.map(({ text }) => text)).toEqual([`${"x".repeat(2_000)}... (cut, 3000000 characters)`, "end"]);
  });

  test("gets its run and node in the environment, and nothing of Millrace's own environment", async () => {
    vi.stubEnv("DATABASE_URL", "postgres://secret");
    vi.stubEnv("MILLRACE_SECRET_KEY", "secret");
    vi.stubEnv("TZ", "Europe/Berlin");
    onTestFinished(() => void vi.unstubAllEnvs());
    const ctx = nodeContext({ runId: "r", nodeId: "n", attempt: 2, opTime: "2025-01-01T00:00:00Z" });
    const result = await run("env", { artifact: "text", env: { GREETING: "a b", MILLRACE_RUN_ID: "forged" } }, ctx);
    const variables = String(result.artifact).split("\n");
    expect(variables).toEqual(
      expect.arrayContaining([
        "GREETING=a b",
        "MILLRACE_ATTEMPT=2",
        "MILLRACE_NODE_ID=n",
        "MILLRACE_OP_TIME=2025-01-01T00:00:00Z",
        "MILLRACE_RUN_ID=r",
        "TZ=Europe/Berlin",
      ]),
    );
    const names = variables.map((variable) => variable.split("=")[0]);
    const allowed = ["PATH", "HOME", "LANG", "TZ", "PWD", "OLDPWD", "SHLVL", "_", "GREETING"];
    expect(names.filter((name = "") => !allowed.includes(name) && !name.startsWith("MILLRACE_"))).toEqual([]);
    expect(names.filter((name = "") => name.startsWith("MILLRACE_"))).toHaveLength(4);
  });

  test("runs in the given folder", async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "millrace-shell-")));
    onTestFinished(() => rm(folder, { recursive: true }));
    expect(await run("pwd", { cwd: folder, artifact: "text" })).toEqual({ artifact: folder });
  });

  test("has no standard input", async () => {
    expect(await run("cat", { artifact: "text" })).toEqual({ artifact: "" });
  });

  test("logs a warning if it left processes running", async () => {
    const ctx = nodeContext();
    await run("sleep 600 &", {}, ctx);
    expect(ctx.lines).toEqual([{ level: "warn", text: "The command left processes running; they were ended." }]);
  });
});

describe("the artifact", () => {
  test.each([
    ["is the last line if that is a JSON object", `echo start; echo '{"rows": 3}'; echo`, { artifact: { rows: 3 } }],
    ["is the last line if that is a JSON list", `printf '[1, 2]'`, { artifact: [1, 2] }],
    ["is none if the last line is something else", `echo '{"rows": 3}'; echo 42`, {}],
    ["is none if the last line only begins like JSON", "echo '[info] done'", {}],
    ["is none if nothing was printed", "true", {}],
  ])("%s", async (_, command, result) => {
    expect(await run(command)).toEqual(result);
  });

  test.each([
    ["none", `echo '{"rows": 3}'`, {}],
    ["json", "echo 42", { artifact: 42 }],
    ["json", "echo null", { artifact: null }],
    ["text", "echo; echo a; echo b; echo", { artifact: "\na\nb" }],
  ] as const)("is read as %s if that is set", async (artifact, command, result) => {
    expect(await run(command, { artifact })).toEqual(result);
  });

  test.each([
    ["json", "echo oops", "`artifact: json` needs JSON in the last line of stdout, and there is none."],
    ["text", "head -c 1048577 /dev/zero", "The output is too long for an artifact; write it to a file."],
  ] as const)("as %s fails for good if it is not available", async (artifact, command, sentence) => {
    const failure = await failureOf(run(command, { artifact }));
    expect(failure.message).toBe(sentence);
    expect(mayRetry(failure)).toBe(false);
  });
});

describe("a command that fails", () => {
  test("reports its exit code and the last lines of stderr", async () => {
    const failure = await failureOf(run("for i in $(seq 1 12); do echo line $i >&2; done; exit 3"));
    const tail = Array.from({ length: 10 }, (_, index) => `line ${index + 3}`).join("\n");
    expect(failure.message).toBe(`The command ended with exit code 3. Last lines of stderr:\n${tail}`);
    expect(mayRetry(failure)).toBe(true);
  });

  test("without stderr output is reported by its code alone", async () => {
    expect((await failureOf(run("exit 1"))).message).toBe("The command ended with exit code 1.");
  });

  test("by a signal may be retried", async () => {
    const failure = await failureOf(run("kill -9 $$"));
    expect(failure.message).toBe("The command was ended by SIGKILL.");
    expect(mayRetry(failure)).toBe(true);
  });

  test.each([
    ["does not exist", "no-such-program", 127],
    ["may not be run", "/dev/null", 126],
  ])("fails for good when the program %s", async (_, command, code) => {
    const failure = await failureOf(run(command));
    expect(failure.message).toContain(`ended with exit code ${code}. Last lines of stderr:\n`);
    expect(mayRetry(failure)).toBe(false);
  });

  test.each([
    ["its folder is not there", "true", { cwd: "/no/such/folder" }, / in the folder `\/no\/such\/folder`: .*ENOENT/],
    ["it holds a NUL", "echo \0", {}, /^The command cannot be started: /],
    ["its environment is too large", "true", { env: { A: "x".repeat(4_000_000) } }, /E2BIG/],
  ])("fails for good when %s", async (_, command, more, sentence) => {
    const failure = await failureOf(run(command, more));
    expect(failure.message).toMatch(sentence);
    expect(mayRetry(failure)).toBe(false);
  });
});

describe("a command of a stopped run", () => {
  test("ends with all its child processes", async () => {
    const controller = new AbortController();
    const line = signal<string>();
    const ctx = nodeContext({ signal: controller.signal, log: line.resolve });
    const running = run("sleep 600 & echo $$ $!; wait", {}, ctx);
    const pids = (await line.promise).split(" ").map(Number);
    expect(pids.map(isAlive)).toEqual([true, true]);
    const reason = new Error("the run was stopped");
    controller.abort(reason);
    expect(await failureOf(running)).toBe(reason);
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  test("is not started", async () => {
    const ctx = nodeContext({ signal: AbortSignal.abort() });
    // Starting it would fail because of the folder.
    expect((await failureOf(run("true", { cwd: "/no/such/folder" }, ctx))).name).toBe("AbortError");
  });
});
