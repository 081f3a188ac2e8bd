/**
 * The node types of this process, and the check of a node's `cfg` against its type: first when a chain is defined, with its
 * templates, and again when they are rendered and the node is about to run.
 */

import { Ajv, type ErrorObject } from "ajv";
import { refusal } from "../../kernel/config/read-settings.ts";
import type { OperatorError } from "../../kernel/errors.ts";
import { compileWithDefaults, type Validator } from "../../kernel/json/defaults.ts";
import { complaint, onePerPlace, pathOf, written } from "../../kernel/json/schema-errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { NodeType } from "./node-type.ts";

/** A problem of a `cfg`: its path (`headers.accept`, empty for the whole) and a sentence. */
export interface CfgProblem {
  path: string;
  message: string;
}

export interface Registry {
  add(types: readonly RegisteredType[]): void;
  get(type: string): NodeType | undefined;
  names(): string[];
  /** How to enable a type that is disabled here. */
  howToEnable(type: string): string | undefined;
  /** All problems of `cfg`. With `templates`, a value that contains `${` passes: its rendered value is not known yet. */
  check(type: string, cfg: unknown, options: { templates: boolean }): CfgProblem[];
  /** The same for a rendered `cfg`. Returns a copy with the defaults of the schema. */
  complete(type: string, cfg: unknown): { cfg: unknown } | { problems: CfgProblem[] };
}

/** A node type; `file` is where it was loaded from, unless it is built in. */
export type RegisteredType = NodeType & { readonly file?: string };

/** A longer list of problems would not help. */
const PROBLEMS_MAX = 20;
/** An unknown key may be megabytes long. */
const STEP_LENGTH_MAX = 64;

interface Entry {
  nodeType: RegisteredType;
  validator(): Validator;
}

/** Keywords whose errors repeat the errors before them. */
const REDUNDANT = new Set(["if", "propertyNames"]);

/** Keywords that check a value as a whole: with a template anywhere inside it, the result is not known yet. */
const CHECKS_WHOLE_VALUE = new Set(["anyOf", "oneOf", "not", "const", "enum", "contains", "uniqueItems"]);

export function createRegistry(
  types: readonly RegisteredType[],
  disabledTypes: Readonly<Record<string, string>> = {},
): Registry {
  // Strict about the schema itself: a misspelt keyword would check nothing.
  const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true, strictTypes: false, strictTuples: false });
  const entries = new Map<string, Entry>();

  function add(more: readonly RegisteredType[]): void {
    for (const nodeType of more) {
      const earlier = entries.get(nodeType.type)?.nodeType;
      if (earlier) throw duplicateType(earlier, nodeType);
      entries.set(nodeType.type, entryOf(ajv, nodeType));
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
    const validate = entry.validator();
    if (validate(copy)) return { cfg: copy };
    const problems = onePerPlace((validate.errors ?? []).filter(({ keyword }) => !REDUNDANT.has(keyword)))
      .filter((error) => !(templates && dependsOnTemplate(error)))
      .slice(0, PROBLEMS_MAX)
      .map((error) => describe(error, type));
    return problems.length > 0 ? { problems } : { cfg: copy };
  }

  return {
    add,
    get: (type) => entries.get(type)?.nodeType,
    howToEnable: (type) => (Object.hasOwn(disabledTypes, type) ? disabledTypes[type] : undefined),
    names: () => [...entries.keys()],
    check(type, cfg, { templates }) {
      const checked = complete(type, cfg, templates);
      return "problems" in checked ? checked.problems : [];
    },
    complete: (type, cfg) => complete(type, cfg, false),
  };
}

/** The schema of a user's type is compiled at once, so that a wrong one refuses the start. Compiling all took a tenth of the CPU time of a start. */
function entryOf(ajv: Ajv, nodeType: RegisteredType): Entry {
  let compiled = nodeType.file === undefined ? undefined : compile(ajv, nodeType);
  return {
    nodeType,
    validator() {
      compiled ??= compile(ajv, nodeType);
      return compiled;
    },
  };
}

function compile(ajv: Ajv, nodeType: RegisteredType): Validator {
  try {
    return compileWithDefaults(ajv, nodeType.cfg);
  } catch (error) {
    const reason = messageOf(error);
    throw refusal([
      `The node type \`${nodeType.type}\` (${place(nodeType)}) has an invalid \`cfg\` schema: ${reason}.`,
    ]);
  }
}

function duplicateType(earlier: RegisteredType, later: RegisteredType): OperatorError {
  // The built-in type is named first, although a module may have added it after the user's.
  const [first, second] = earlier.file !== undefined && later.file === undefined ? [later, earlier] : [earlier, later];
  const places = `once ${place(first)} and once ${place(second)}`;
  return refusal([`There are two node types \`${later.type}\`, ${places}. Give one of them another name.`]);
}

function place({ file }: RegisteredType): string {
  return file === undefined ? "built in" : `in ${file}`;
}

function dependsOnTemplate({ data, keyword }: ErrorObject): boolean {
  if (typeof data === "string") return data.includes("${");
  return CHECKS_WHOLE_VALUE.has(keyword) && holdsTemplate(data);
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
