/** The columns of a landed table: the output fields of the endpoint, then what every table has. */
import type { LakeColumn, LakeRow } from "../../engines/index.ts";
import { parseRecord } from "../decode/json.ts";
import { compileOutput } from "../decode/output.ts";
import type { OutputField } from "../definition/policy.ts";
import type { Snapshot } from "../spec/snapshot.ts";
import type { LandingRecord } from "../store/records/landing.ts";

const OWN_COLUMNS = [
  { name: "data", type: "json" },
  { name: "_key", type: "string" },
  { name: "_deleted", type: "boolean" },
  { name: "_version", type: "integer" },
] as const satisfies readonly LakeColumn[];

/** Where ids and records come from two endpoints, the fields are those of the second. */
export function outputFieldsOf({ spec, detail }: Pick<Snapshot, "spec" | "detail">): readonly OutputField[] {
  return detail && detail.outputFields.length > 0 ? detail.outputFields : spec.outputFields;
}

export function columnsOf(fields: readonly OutputField[]): LakeColumn[] {
  return [...fields.map(({ name, type }) => ({ name, type })), ...OWN_COLUMNS];
}

export function compileRow(fields: readonly OutputField[]): (record: LandingRecord) => LakeRow {
  const output = compileOutput(fields);
  const none = fields.map(() => null);
  return ({ item_key, version, deleted, data }) => {
    const values = data === null ? none : output(parseRecord(data)).values;
    return [...values, data, item_key, deleted, version];
  };
}
