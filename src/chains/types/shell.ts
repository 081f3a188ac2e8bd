/**
 * A node that runs a command line. It gets a small environment, so that Millrace's own (database, keys) is not passed on. It
 * still runs as the same user, so the type is only registered if the operator allows it.
 */
import { Type } from "typebox";
import { parseWithin } from "../../kernel/json/complexity.ts";
import { withoutTrailing } from "../../kernel/text/without-trailing.ts";
import { FinalFailure, type NodeContext, nodeType } from "./node-type.ts";
import { type Output, outputReader } from "./output.ts";
import { type GroupEnd, type GroupOptions, runInGroup } from "./process-group.ts";

/** From SIGTERM to SIGKILL when the run is stopped. */
const KILL_AFTER_MS = 5_000;
/** Linux allows 128 KiB for one argument, and a character may take four bytes. */
const COMMAND_LENGTH_MAX = 32_000;
/** The variables that are inherited from Millrace. */
const INHERITED = ["PATH", "HOME", "LANG", "TZ"];
const PATH_DEFAULT = "/usr/local/bin:/usr/bin:/bin";
/** Errors that another attempt would repeat: no such folder, not permitted, too long, a NUL inside. */
const FINAL_CODES = new Set(["ENOENT", "ENOTDIR", "EACCES", "E2BIG", "ERR_INVALID_ARG_VALUE"]);
/** Exit codes of the shell when the program is not found or cannot be run. */
const FINAL_EXIT_CODES = new Set([126, 127]);

export const shell = nodeType({
  type: "shell",
  readsParents: false,
  summary: "Runs a command with /bin/sh.",
  cfg: Type.Object(
    {
      command: Type.String({ minLength: 1, maxLength: COMMAND_LENGTH_MAX }),
      env: Type.Optional(
        Type.Record(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$" }), Type.String(), {
          additionalProperties: false,
        }),
      ),
      cwd: Type.Optional(Type.String({ minLength: 1 })),
      /** Unset: the last line of stdout, if it is a JSON object or list. `json`: the last line, which must be JSON. */
      artifact: Type.Optional(Type.Union([Type.Literal("none"), Type.Literal("json"), Type.Literal("text")])),
    },
    { additionalProperties: false },
  ),
  async execute(ctx, { command, env = {}, cwd, artifact }) {
    ctx.signal.throwIfAborted();
    const stdout = outputReader((line) => ctx.log(line));
    const stderr = outputReader((line) => ctx.log(line, "warn"));
    const end = await run(command, {
      cwd,
      env: environment(ctx, env),
      signal: ctx.signal,
      killAfterMs: KILL_AFTER_MS,
      onStdout: stdout.push,
      onStderr: stderr.push,
    });
    const output = stdout.end();
    const errorOutput = stderr.end();
    if (end.leftOthers) ctx.log("The command left processes running; they were ended.", "warn");
    ctx.signal.throwIfAborted();
    if (end.code !== 0) throw failure(end, errorOutput);
    const value = artifactOf(artifact, output);
    return value === undefined ? {} : { artifact: value };
  },
});

function environment(ctx: NodeContext, given: Record<string, string>): Record<string, string> {
  const inherited = INHERITED.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    PATH: PATH_DEFAULT,
    ...Object.fromEntries(inherited),
    ...given,
    MILLRACE_RUN_ID: ctx.runId,
    MILLRACE_NODE_ID: ctx.nodeId,
    MILLRACE_ATTEMPT: String(ctx.attempt),
    ...(ctx.opTime !== null && { MILLRACE_OP_TIME: ctx.opTime }),
  };
}

async function run(command: string, options: GroupOptions): Promise<GroupEnd> {
  try {
    return await runInGroup("/bin/sh", ["-c", command], options);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (!FINAL_CODES.has(code)) throw error;
    // A missing folder is reported as if the program were missing.
    const where = options.cwd === undefined ? "" : ` in the folder \`${options.cwd}\``;
    throw new FinalFailure(`The command cannot be started${where}: ${message}.`, { cause: error });
  }
}

function failure({ code, signal }: GroupEnd, { tail }: Output): Error {
  const end = code === null ? `was ended by ${signal}` : `ended with exit code ${code}`;
  const message = `The command ${end}.${tail === "" ? "" : ` Last lines of stderr:\n${tail}`}`;
  return code !== null && FINAL_EXIT_CODES.has(code) ? new FinalFailure(message) : new Error(message);
}

/** Errors here are final: the command has already done its work. */
function artifactOf(wanted: "none" | "json" | "text" | undefined, { text, lastLine = "" }: Output): unknown {
  switch (wanted) {
    case "none":
      return undefined;
    case "text":
      if (text === undefined) throw new FinalFailure("The output is too long for an artifact; write it to a file.");
      return withoutTrailing(text, "\n");
    case "json": {
      const value = parsed(lastLine);
      if (value !== undefined) return value;
      throw new FinalFailure("`artifact: json` needs JSON in the last line of stdout, and there is none.");
    }
    case undefined:
      return /^\s*[[{]/.test(lastLine) ? parsed(lastLine) : undefined;
  }
}

function parsed(json: string): unknown {
  try {
    return parseWithin(json);
  } catch {
    return undefined;
  }
}
