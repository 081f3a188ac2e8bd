/**
 * The node types that chains can use here, and the check of a node's `cfg` against its type: once when a chain is defined,
 * while templates still stand in it, and again when they are filled in and the node is about to run.
 */

import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { refusal } from "../../kernel/config/read-settings.ts";
import type { OperatorError } from "../../kernel/errors.ts";
import { complaint, onePerPlace, pathOf, written } from "../../kernel/json/schema-errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { NodeType } from "./node-type.ts";

/** What is wrong with a `cfg`: where inside it (`headers.accept`, empty for the whole), and a sentence. */
export interface CfgProblem {
  path: string;
  message: string;
}

export interface Registry {
  add(types: readonly RegisteredType[]): void;
  get(type: string): NodeType | undefined;
  names(): string[];
  /** What to do to have a type that is known but switched off here. */
  howToHave(type: string): string | undefined;
  /** All that is wrong with `cfg`. With `templates` a value that holds `${` is taken on trust: nobody knows it yet. */
  check(type: string, cfg: unknown, options: { templates: boolean }): CfgProblem[];
  /** The same, right before the node runs. Answers a copy that has the defaults of the schema filled in. */
  complete(type: string, cfg: unknown): { cfg: unknown } | { problems: CfgProblem[] };
}

/** A type as the registry takes it; `file` is where it comes from, unless it is built in. */
export type RegisteredType = NodeType & { readonly file?: string };

/** Beyond that many, a list of problems no longer helps. */
const PROBLEMS_MAX = 20;
/** An unknown key may be megabytes long. */
const STEP_LENGTH_MAX = 64;

/** Keywords that only repeat what the errors before them said. */
const REPEATS = new Set(["if", "propertyNames"]);

/** Keywords that judge a value as a whole: one template anywhere inside it leaves the verdict open. */
const JUDGES_WHOLE = new Set(["anyOf", "oneOf", "not", "const", "enum", "contains", "uniqueItems"]);

export function createRegistry(
  types: readonly RegisteredType[],
  switchedOff: Readonly<Record<string, string>> = {},
): Registry {
  // Strict about the schema's own spelling: a misspelt keyword would check nothing.
  const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true, strictTypes: false, strictTuples: false });
  const entries = new Map<string, { nodeType: RegisteredType; validate: ValidateFunction }>();

  function add(more: readonly RegisteredType[]): void {
    for (const nodeType of more) {
      const earlier = entries.get(nodeType.type)?.nodeType;
      if (earlier) throw twice(earlier, nodeType);
      entries.set(nodeType.type, { nodeType, validate: compile(ajv, nodeType) });
    }
  }
  add(types);

  function complete(type: string, cfg: unknown, templates: boolean): { cfg: unknown } | { problems: CfgProblem[] } {
    const entry = entries.get(type);
    if (!entry) {
      const message = `There is no node type \`${type}\` here.${didYouMean(type, entries.keys())}`;
      return { problems: [{ path: "", message }] };
    }
    const copy: unknown = structuredClone(cfg ?? {});
    if (entry.validate(copy)) return { cfg: copy };
    const problems = onePerPlace((entry.validate.errors ?? []).filter(({ keyword }) => !REPEATS.has(keyword)))
      .filter((error) => !(templates && isOpen(error)))
      .slice(0, PROBLEMS_MAX)
      .map((error) => describe(error, type));
    return problems.length > 0 ? { problems } : { cfg: copy };
  }

  return {
    add,
    get: (type) => entries.get(type)?.nodeType,
    howToHave: (type) => (Object.hasOwn(switchedOff, type) ? switchedOff[type] : undefined),
    names: () => [...entries.keys()],
    check(type, cfg, { templates }) {
      const checked = complete(type, cfg, templates);
      return "problems" in checked ? checked.problems : [];
    },
    complete: (type, cfg) => complete(type, cfg, false),
  };
}

function compile(ajv: Ajv, nodeType: RegisteredType): ValidateFunction {
  try {
    return ajv.compile(nodeType.cfg);
  } catch (error) {
    const reason = messageOf(error);
    throw refusal([`The node type \`${nodeType.type}\` (${place(nodeType)}) has a bad \`cfg\` schema: ${reason}.`]);
  }
}

function twice(earlier: RegisteredType, later: RegisteredType): OperatorError {
  // What is built in comes first, though a module may have brought it after the user's own.
  const [first, second] = earlier.file !== undefined && later.file === undefined ? [later, earlier] : [earlier, later];
  const places = `once ${place(first)} and once ${place(second)}`;
  return refusal([`There are two node types \`${later.type}\`, ${places}. Give one of them another name.`]);
}

function place({ file }: RegisteredType): string {
  return file === undefined ? "built in" : `in ${file}`;
}

function isOpen({ data, keyword }: ErrorObject): boolean {
  if (typeof data === "string") return data.includes("${");
  return JUDGES_WHOLE.has(keyword) && holdsTemplate(data);
}

function holdsTemplate(value: unknown): boolean {
  if (typeof value === "string") return value.includes("${");
  return typeof value === "object" && value !== null && Object.values(value).some(holdsTemplate);
}

function describe(error: ErrorObject, type: string): CfgProblem {
  const steps = pathOf(error).map((step) => step.slice(0, STEP_LENGTH_MAX));
  const subject = `\`${written(["cfg", ...steps])}\``;
  return { path: written(steps), message: complaint(error, subject, `field of \`${type}\``) };
}
