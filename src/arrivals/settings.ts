/** What `millrace.yaml` may say under `arrivals`. */

import { type Static, Type } from "typebox";
import { OperatorError } from "../kernel/errors.ts";
import { messageOf } from "../kernel/text/message-of.ts";
import { OP_TIME_PATTERN } from "../kernel/time/op-time.ts";

const FileRule = Type.Object(
  {
    /** A regular expression for the whole file name; its groups can be used below. */
    pattern: Type.String({ minLength: 1, maxLength: 1_000 }),
    /** `$1` or `$<name>` stand for the groups of the pattern. */
    table: Type.String({ minLength: 1, maxLength: 255 }),
    opTime: Type.String({ minLength: 1, maxLength: 255 }),
  },
  { additionalProperties: false },
);

export const ArrivalsSettings = Type.Object(
  {
    /** Runs of models at the same time in one process. */
    slots: Type.Integer({ minimum: 1, maximum: 1_000, default: 8 }),
    /** How long an announcement waits for the models that it has triggered. */
    waitSeconds: Type.Integer({ minimum: 0, maximum: 300, default: 30 }),
    /** For a model that names none. */
    timeoutSeconds: Type.Integer({ minimum: 1, maximum: 86_400, default: 3_600 }),
    /** Rows that one run of a model may bring. */
    rowsMax: Type.Integer({ minimum: 1, maximum: 10_000_000, default: 500_000 }),
    /** What an announced opTime must look like, beside being an opTime at all. */
    opTimePattern: Type.String({ minLength: 1, maxLength: 1_000, default: OP_TIME_PATTERN }),
    /** `ignore` keeps and compares the names of tables in upper case. */
    tableCase: Type.Union([Type.Literal("as-given"), Type.Literal("ignore")], { default: "as-given" }),
    /** After so many lost workers in a row a run is given up. */
    lostLimit: Type.Integer({ minimum: 1, maximum: 1_000, default: 5 }),
    /** Files that are arrivals once the last stage of all their shards is done. */
    files: Type.Array(FileRule, { default: [], maxItems: 1_000 }),
  },
  { additionalProperties: false, default: {} },
);
export type ArrivalsSettings = Static<typeof ArrivalsSettings>;

/** A regular expression of the settings; `place` names it for the person who wrote it. */
export function patternOf(text: string, place: string): RegExp {
  try {
    return new RegExp(text);
  } catch (error) {
    const reason = messageOf(error);
    throw new OperatorError(`${place} in the configuration is not a regular expression: ${reason}`);
  }
}
