/**
 * Node types from user files, which `millrace.yaml` lists under `chains.nodeTypes`. Such a file is plain JavaScript and imports
 * nothing from Millrace: its default export is a node type, or a list of them.
 */

import { stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { TSchema } from "typebox";
import { refusal } from "../../kernel/config/read-settings.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { FinalFailure, type NodeContext, type NodeResult, type NodeType } from "./node-type.ts";

/** A node type from a user file. */
export type UserType = NodeType & { readonly file: string };

const EXTENSIONS = [".js", ".mjs"];
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const FIELDS = ["type", "summary", "cfg", "execute"];
const RESULT_FIELDS = ["artifact", "checkpoint"];

/** All types of all files; throws one error with all problems. */
export async function loadUserTypes(files: readonly string[], cwd: string): Promise<UserType[]> {
  const types: UserType[] = [];
  const problems: string[] = [];
  for (const file of files) {
    const loaded = await load(file, cwd);
    if ("problem" in loaded) {
      problems.push(`${file}: ${loaded.problem}`);
      continue;
    }
    for (const { candidate, where } of listed(loaded.content)) {
      const found = problemsOf(candidate);
      problems.push(...found.map((problem) => `${file}: ${where} ${problem}.`));
      if (found.length === 0) types.push(toUserType(candidate as Candidate, file));
    }
  }
  if (problems.length > 0) throw refusal(problems);
  return types;
}

async function load(file: string, cwd: string): Promise<{ content: unknown } | { problem: string }> {
  const path = resolve(cwd, file);
  if (!EXTENSIONS.includes(extname(file)))
    return { problem: `a file of node types ends in ${EXTENSIONS.join(" or ")}.` };
  if (!(await isFile(path))) return { problem: `there is no such file (looked for ${path}).` };
  try {
    const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
    if (!("default" in module))
      return { problem: "it has no default export; write `export default { type, cfg, execute }`." };
    return { content: module["default"] };
  } catch (error) {
    return { problem: whyNotLoaded(error, file) };
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

function whyNotLoaded(error: unknown, file: string): string {
  const reason = messageOf(error);
  if (!(error instanceof SyntaxError)) return `it fails when it is loaded: ${reason}.`;
  return `it is not valid JavaScript: ${reason}. \`node --check ${file}\` shows where.`;
}

function listed(content: unknown): { candidate: unknown; where: string }[] {
  if (!Array.isArray(content)) return [{ candidate: content, where: "the default export" }];
  return content.map((candidate: unknown, index) => ({ candidate, where: `type ${index + 1} of its list` }));
}

/** A valid export. Its `execute` may be synchronous and may return nothing. */
interface Candidate {
  type: string;
  summary?: string;
  cfg: TSchema;
  execute(ctx: NodeContext, cfg: unknown): unknown;
}

/** Each completes the sentence "The default export ...". */
function problemsOf(candidate: unknown): string[] {
  if (!isRecord(candidate)) return ["must be an object `{ type, cfg, execute }`"];
  const { type, summary, cfg, execute } = candidate;
  const found = Object.keys(candidate)
    .filter((key) => !FIELDS.includes(key))
    .map((key) => `has the unknown field \`${key}\`; a node type has ${FIELDS.join(", ")}`);
  if (typeof type !== "string" || !NAME.test(type)) {
    found.push("needs a `type`: its name, 1 to 64 of a-z, 0-9, `_` and `-`, a letter first");
  }
  if (!isRecord(cfg) || cfg["type"] !== "object") {
    found.push('needs a `cfg`: a JSON Schema such as `{ type: "object", properties: {} }`');
  }
  if (typeof execute !== "function") found.push("needs `execute`: a function `(ctx, cfg) => ({ artifact })`");
  if (summary !== undefined && typeof summary !== "string") found.push("has a `summary` that is not text");
  return found;
}

function toUserType(candidate: Candidate, file: string): UserType {
  const { type, summary = "", cfg } = candidate;
  return {
    type,
    summary,
    // As for every setting, an unknown field is refused unless the schema permits it.
    cfg: { additionalProperties: false, ...cfg },
    execute: async (ctx, given) => resultOf(type, await candidate.execute(ctx, given)),
    file,
  };
}

/** Rejects a result of another shape, which would be lost silently. */
function resultOf(type: string, result: unknown): NodeResult {
  if (result === undefined || result === null) return {};
  const wanted = `\`execute\` of the node type \`${type}\` must return { artifact?, checkpoint? }`;
  if (!isRecord(result)) throw new FinalFailure(`${wanted}, not ${Array.isArray(result) ? "a list" : typeof result}.`);
  const unknown = Object.keys(result).find((key) => !RESULT_FIELDS.includes(key));
  if (unknown === undefined) return result;
  throw new FinalFailure(`${wanted}, without \`${unknown}\`.${didYouMean(unknown, RESULT_FIELDS)}`);
}
