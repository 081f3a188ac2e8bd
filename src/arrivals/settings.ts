/** The settings under `arrivals` in `millrace.yaml`. */
import { type Static, Type } from "typebox";
import { OperatorError } from "../kernel/errors.ts";
import { messageOf } from "../kernel/text/message-of.ts";
import { OP_TIME_PATTERN } from "../kernel/time/op-time.ts";

const FileRule = Type.Object(
  {
    /** A regular expression for the whole file name. */
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
    /** Default of a model. */
    timeoutSeconds: Type.Integer({ minimum: 1, maximum: 86_400, default: 3_600 }),
    /** Rows that one run of a model may return. */
    rowsMax: Type.Integer({ minimum: 1, maximum: 10_000_000, default: 500_000 }),
    /** Bytes that one run of a model may return; counted as in engines.md. */
    resultBytesMax: Type.Integer({ minimum: 1_048_576, maximum: 17_179_869_184, default: 268_435_456 }),
    /** Announced opTimes must match this regular expression as well as the general pattern. */
    opTimePattern: Type.String({ minLength: 1, maxLength: 1_000, default: OP_TIME_PATTERN }),
    /** `ignore` stores and compares table names in upper case. */
    tableCase: Type.Union([Type.Literal("as-given"), Type.Literal("ignore")], { default: "as-given" }),
    /** A run is FAILED after this many processes in a row were lost while they ran it. */
    lostLimit: Type.Integer({ minimum: 1, maximum: 1_000, default: 5 }),
    /** How long arrivals are kept; those of opTimes that a model still waits for stay. */
    keepDays: Type.Integer({ minimum: 1, maximum: 36_500, default: 1_095 }),
    /** How long the log of runs is kept. The newest success of a model and opTime stays. */
    runsKeepDays: Type.Integer({ minimum: 1, maximum: 36_500, default: 365 }),
    /** Files that count as arrivals once the last stage of all their shards is done. */
    files: Type.Array(FileRule, { default: [], maxItems: 1_000 }),
  },
  { additionalProperties: false, default: {} },
);
export type ArrivalsSettings = Static<typeof ArrivalsSettings>;

/** A regular expression of the settings; `place` names it in the error. */
export function patternOf(text: string, place: string): RegExp {
  try {
    return new RegExp(text);
  } catch (error) {
    const reason = messageOf(error);
    throw new OperatorError(`${place} in the configuration is not a regular expression: ${reason}`);
  }
}
