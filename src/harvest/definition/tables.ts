/** Which table of the registry holds which part of an endpoint's cfg layer. */
import type { POLICY_FIELDS, PolicySection } from "./policy.ts";

/** By section or field of a policy. `expr` is divided: each of its fields has a table. */
const CFG_TABLES = {
  http: "reg_prov_http_cfg",
  auth: "reg_prov_http_cfg",
  pagination: "reg_prov_pagination_cfg",
  window: "reg_prov_window_offset_cfg",
  slicing: "reg_prov_window_offset_cfg",
  retry: "reg_prov_retry_cfg",
  rateLimit: "reg_prov_rate_limit_cfg",
  budget: "reg_prov_rate_limit_cfg",
  batching: "reg_prov_batching_cfg",
  landing: "reg_prov_batching_cfg",
  update: "reg_prov_batching_cfg",
  bodies: "reg_prov_batching_cfg",
  response: "reg_expr_field_dict",
  outputFields: "reg_expr_field_dict",
  params: "reg_prov_api_param_map",
  enumerator: "reg_prov_expr_render_rule",
  family: "reg_prov_expr_render_rule",
  classifier: "reg_prov_expr_render_rule",
  redact: "reg_prov_expr_render_rule",
  "expr.allowedFunctions": "reg_prov_expr_capability",
  "expr.nullPolicy": "reg_prov_expr_render_rule",
} as const satisfies Record<Exclude<PolicySection | keyof typeof POLICY_FIELDS, "expr">, string> &
  Record<`expr.${string}`, string>;

type Table = (typeof CFG_TABLES)[keyof typeof CFG_TABLES];
/** Those with one row for an endpoint; parameters have one each. */
export type CfgTable = Exclude<Table, "reg_prov_api_param_map">;
export const CFG_TABLE_NAMES = [...new Set(Object.values(CFG_TABLES))].filter(
  (table) => table !== "reg_prov_api_param_map",
);

/** The table of a path in a policy, such as `pagination.pageSize`; undefined for other fields of an endpoint. */
export function cfgTableOf(path: readonly string[]): Table | undefined {
  const tables: Readonly<Record<string, Table>> = CFG_TABLES;
  const [part = "", field = "allowedFunctions"] = path;
  return part === "expr" ? (tables[`expr.${field}`] ?? "reg_prov_expr_capability") : tables[part];
}
