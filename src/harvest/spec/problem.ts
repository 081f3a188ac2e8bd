/** What is wrong with a configuration: where it was written, which field, and why. */
import { cfgTableOf } from "../definition/tables.ts";
import type { Layer, Origins } from "./layers.ts";

export interface Problem {
  /** The reg_* table that holds the value, or where it is missing; `trigger` for what a plan was started with. */
  table: string;
  /** The path in the merged policy, such as `pagination.nextTokenPath`; `detail.` stands before those of the detail endpoint. */
  field: string;
  /** A sentence. */
  reason: string;
}

const LAYER_TABLES: Readonly<Partial<Record<Layer, string>>> = {
  provenance: "reg_provenance",
  endpoint: "reg_prov_endpoint_def",
  trigger: "trigger",
};

/** The table whose row has the value, or should have it. */
export function tableOf(field: string, origins: Origins): string {
  const layer = origins[field] ?? origins[field.replace(/\[.*/, "")];
  const written = layer && LAYER_TABLES[layer];
  if (written) return written;
  return cfgTableOf(field.split(/[.[]/)) ?? "reg_prov_endpoint_def";
}
