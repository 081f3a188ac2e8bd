/**
 * A definition as rows of the registry, and back. The way back gives the normal form of the definition: empty parts are absent,
 * and a schedule names its endpoint.
 */
import { isRecord } from "../../kernel/json/is-record.ts";
import type { SourceParts, StoredSource } from "../store/sources/registry.ts";
import type { Definition, EndpointDefinition } from "./definition.ts";
import type { PolicyLayer } from "./policy.ts";
import { CFG_TABLE_NAMES, type CfgTable, cfgTableOf } from "./tables.ts";

/** The rows that say the same as a stored source, without ids and times. */
export type Rows = Pick<StoredSource, keyof SourceParts["source"]> & Omit<SourceParts, "source">;

export function partsOf(definition: Definition, baseUrlOverride: string | null): SourceParts {
  const { source, name, description = "", baseUrl, defaults = {}, endpoints } = definition;
  const usual = defaultEndpoint(definition);
  return {
    source: {
      provenance_code: source,
      name,
      description,
      base_url: baseUrl,
      base_url_override: baseUrlOverride,
      defaults,
    },
    endpoints: Object.entries(endpoints).map(([endpointName, endpoint]) => endpointRow(endpointName, endpoint)),
    credentials: Object.entries(definition.credentials ?? {}).map(([credentialName, reference]) => ({
      credential_name: credentialName,
      ...("env" in reference
        ? { kind: "env" as const, reference: reference.env }
        : { kind: "secret" as const, reference: reference.secret }),
    })),
    schedules: Object.entries(definition.schedules ?? {}).map(([scheduleName, schedule]) => ({
      schedule_name: scheduleName,
      endpoint_name: schedule.endpoint ?? usual ?? "",
      operation_code: schedule.operation,
      cron: schedule.cron,
      time_zone: schedule.timeZone,
      params: schedule.params ?? {},
      priority: schedule.priority ?? null,
    })),
  };
}

/** The endpoint of a plan that names none: the one that says so, or the only one to search. */
export function defaultEndpoint({ endpoints }: Pick<Definition, "endpoints">): string | undefined {
  const searches = Object.entries(endpoints).filter(([, { role }]) => role === "SEARCH");
  const declared = searches.filter(([, endpoint]) => endpoint.default);
  const [first] = declared.length > 0 ? declared : searches.length === 1 ? searches : [];
  return first?.[0];
}

function endpointRow(endpointName: string, endpoint: EndpointDefinition): SourceParts["endpoints"][number] {
  const { role, method, path, default: isDefault, requiresAuth, detail, overrides = {}, params, ...policy } = endpoint;
  const cfg = Object.fromEntries(
    CFG_TABLE_NAMES.map((table) => [table, cfgOf(table, policy)]),
  ) as SourceParts["endpoints"][number]["cfg"];
  // A list without items replaces that of a lower layer, and leaves no rows of its own.
  if (params?.length === 0) cfg.reg_prov_http_cfg = { ...cfg.reg_prov_http_cfg, params };
  return {
    endpoint_name: endpointName,
    role_code: role,
    http_method: method,
    path_template: path,
    is_default: isDefault,
    requires_auth: requiresAuth,
    detail_endpoint: detail ?? null,
    overrides,
    cfg,
    params: (params ?? []).map(({ name, ...rest }) => ({ param_name: name, cfg: rest })),
  };
}

/** What the table holds of the policy. */
function cfgOf(table: CfgTable, policy: Omit<PolicyLayer, "params">): object | null {
  const { expr, ...rest } = policy;
  const parts: [string, unknown][] = Object.entries(rest).filter(
    ([part, value]) => value !== undefined && cfgTableOf([part]) === table,
  );
  if (expr) {
    const fields = Object.entries(expr).filter(([field]) => cfgTableOf(["expr", field]) === table);
    // A section without fields is kept too, in the first of its tables.
    if (fields.length > 0 || (Object.keys(expr).length === 0 && cfgTableOf(["expr"]) === table)) {
      parts.push(["expr", Object.fromEntries(fields)]);
    }
  }
  return parts.length === 0 ? null : Object.fromEntries(parts);
}

/** With the base URL of the file. */
export function definitionOf(rows: Rows): Definition {
  const credentials = rows.credentials.map(({ credential_name, kind, reference }) => [
    credential_name,
    kind === "env" ? { env: reference } : { secret: reference },
  ]);
  const schedules = rows.schedules.map((row) => [
    row.schedule_name,
    {
      endpoint: row.endpoint_name,
      operation: row.operation_code,
      cron: row.cron,
      timeZone: row.time_zone,
      ...unlessEmpty("params", row.params),
      ...(row.priority === null ? {} : { priority: row.priority }),
    },
  ]);
  const endpoints = rows.endpoints.map((row) => [row.endpoint_name, endpointOf(row)]);
  // The rows were written from a definition, so they have its form.
  return {
    source: rows.provenance_code,
    name: rows.name,
    ...(rows.description === "" ? {} : { description: rows.description }),
    baseUrl: rows.base_url,
    ...unlessEmpty("credentials", Object.fromEntries(credentials)),
    ...unlessEmpty("defaults", rows.defaults),
    endpoints: Object.fromEntries(endpoints),
    ...unlessEmpty("schedules", Object.fromEntries(schedules)),
  };
}

function endpointOf(row: Rows["endpoints"][number]): object {
  const policy: Record<string, unknown> = {};
  for (const table of CFG_TABLE_NAMES) {
    for (const [part, value] of Object.entries(row.cfg[table] ?? {})) {
      const present = policy[part];
      policy[part] = isRecord(present) && isRecord(value) ? { ...present, ...value } : (value as unknown);
    }
  }
  const params = row.params.map(({ param_name, cfg }) => ({ name: param_name, ...cfg }));
  return {
    role: row.role_code,
    method: row.http_method,
    path: row.path_template,
    default: row.is_default,
    requiresAuth: row.requires_auth,
    ...(row.detail_endpoint === null ? {} : { detail: row.detail_endpoint }),
    ...unlessEmpty("overrides", row.overrides),
    ...policy,
    ...(params.length === 0 ? {} : { params }),
  };
}

function unlessEmpty(name: string, value: object): object {
  return Object.keys(value).length === 0 ? {} : { [name]: value };
}

/** The definition as the registry answers it; also its numbers are those of JSON, which has no -0. */
export function normalised(definition: Definition): Definition {
  const { source, ...parts } = partsOf(definition, null);
  return JSON.parse(JSON.stringify(definitionOf({ ...source, ...parts }))) as Definition;
}
