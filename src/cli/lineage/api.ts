/** The parts of the lineage API that the commands use, and the lookup of tenants and assets. */
import { OperatorError } from "../../kernel/errors.ts";
import { type Client, pathTo, Refusal, type Request } from "../common/client.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";
import type { Page } from "../common/paging.ts";

export interface Tenant {
  id: number;
  code: string;
  name: string;
  state: "NEW" | "SYNCING" | "READY";
  cutoverTime: string | null;
  rateLimitPerMinute: number | null;
  bodyLimitBytes: number | null;
  createdAt: string;
}

export interface Asset {
  id: string;
  kind: string;
  name: string;
  fullName: string;
  description: string | null;
}

export interface LineageEvent {
  id: string;
  kind: string;
  eventType: string | null;
  eventTime: string;
  runId: string | null;
  jobNamespace: string | null;
  jobName: string | null;
  producer: string | null;
  source: string;
  baseline: boolean;
  state: "APPLIED" | "BUFFERED" | "SKIPPED" | "DEAD";
  error: string | null;
  receivedAt: string;
}

/** Why a traversal of the graph is incomplete. */
export type CutReason = "NODES" | "EDGES" | "TIME";

export const TENANT_FLAG: Flag = {
  usage: "--tenant <tenant>",
  description: "The id or the code of the tenant. Optional if the key has a tenant, or if there is only one.",
};

const ID = /^\d+$/;
/** The search finds parts of codes and names: more tenants than one code is a part of. */
const NAMESAKES_MAX = 200;

/** The id of the tenant of `--tenant`, or of the only one that the key can see. */
export async function tenantOf(client: Client, given: Given): Promise<string> {
  const named = given.maybeText("--tenant");
  if (named !== undefined) return ID.test(named) ? named : idOf(client, named);
  const { items, total } = await client.call<Page<Tenant>>({
    method: "GET",
    path: "api/v1/lineage/tenants",
    query: { size: 1 },
  });
  const [only] = items;
  if (!only) {
    const advice = "Create one with `millrace lineage tenant create`.";
    throw new OperatorError(`There are no tenants. ${advice}`, EXIT.notFound);
  }
  if (total === 1) return String(only.id);
  const advice = "`millrace lineage tenants` lists them.";
  throw new OperatorError(`There are ${total} tenants: choose one with --tenant. ${advice}`, EXIT.usage);
}

async function idOf(client: Client, code: string): Promise<string> {
  const { items } = await client.call<Page<Tenant>>({
    method: "GET",
    path: "api/v1/lineage/tenants",
    query: { q: code, size: NAMESAKES_MAX },
  });
  const found = items.find((tenant) => tenant.code === code);
  if (found) return String(found.id);
  throw new OperatorError(
    `There is no tenant with the code \`${code}\`. \`millrace lineage tenants\` lists them.`,
    EXIT.notFound,
  );
}

/** Calls `/tenants/ID/...` for the chosen tenant. */
export async function callTenant<Reply>(client: Client, given: Given, { path, ...request }: Request): Promise<Reply> {
  const tenant = await tenantOf(client, given);
  return client.call<Reply>({ ...request, path: `${pathTo`api/v1/lineage/tenants/${tenant}`}/${path}` });
}

const SHOWN_MAX = 5;

/** Finds an asset by its id or name. */
export async function assetIdOf(client: Client, tenant: string, asset: string): Promise<string> {
  if (/^\d{1,19}$/.test(asset) && (await isAsset(client, tenant, asset))) return asset;
  const { items } = await client.call<{ items: Asset[] }>({
    method: "GET",
    path: "api/v1/lineage/assets",
    query: { tenant, name: asset, limit: SHOWN_MAX + 1 },
  });
  const [found, ...others] = items;
  if (!found) {
    const advice = "Use `millrace lineage search` to find assets by words in their names.";
    throw new OperatorError(`There is no asset \`${printable(asset)}\`. ${advice}`, EXIT.notFound);
  }
  if (others.length === 0) return found.id;
  const which = items.slice(0, SHOWN_MAX).map(({ id, kind, fullName }) => `${id} (${kind} ${printable(fullName)})`);
  const advice = "Use an id, or a full name.";
  throw new OperatorError(
    `Several assets are named \`${printable(asset)}\`: ${which.join(", ")}. ${advice}`,
    EXIT.usage,
  );
}

async function isAsset(client: Client, tenant: string, id: string): Promise<boolean> {
  try {
    await client.call({ method: "GET", path: pathTo`api/v1/lineage/assets/${id}`, query: { tenant } });
    return true;
  } catch (error) {
    if (error instanceof Refusal && error.exitCode === EXIT.notFound) return false;
    throw error;
  }
}
