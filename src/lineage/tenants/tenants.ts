/**
 * Use cases and the cache of tenants. Every event needs its tenant, and a statement for each would be half of an event's cost. The
 * cache lasts some seconds; a change clears it in all processes by a wake-up hint.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { auditedChanges } from "../../kernel/auth/audited-changes.ts";
import { type Db, type Queryable, sqlState, UNIQUE_VIOLATION } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { storableText } from "../../kernel/data/storable.ts";
import { type ApiError, invalid } from "../../kernel/errors.ts";
import { differences } from "../../kernel/json/differences.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type LineageHints, lineageError } from "../catalogue.ts";
import type { LineageSettings } from "../settings.ts";
import { lockGraph } from "../store/graph-lock.ts";
import {
  findTenant,
  insertTenant,
  type ListTenants,
  listTenants,
  lockTenant,
  moveTenant,
  type NewTenant,
  type TenantChange,
  type TenantRow,
  updateTenant,
} from "../store/tenants.ts";
import type { TenantModel } from "../tasks/model.ts";
import type { TenantState } from "./states.ts";

export interface Tenant {
  id: string;
  code: string;
  name: string;
  state: TenantState;
  cutoverTime: Date | null;
  rateLimitPerMinute: number | null;
  bodyLimitBytes: number | null;
  model: TenantModel | null;
}

export interface Tenants {
  /** As it was some seconds ago at most. */
  find(id: string): Promise<Tenant | undefined>;
  /** The tenant of an event. One that is not known is made if the settings say so, with the names that the event has. */
  admit(id: string, introduction: () => Introduction): Promise<Tenant>;
  list(query: ListTenants): ReturnType<typeof listTenants>;
  /** As it is now. */
  get(id: string): Promise<TenantRow>;
  create(tenant: NewTenant, actor: Actor, options?: DryRun): Promise<TenantRow>;
  update(id: string, change: TenantChange, actor: Actor, options?: DryRun): Promise<TenantRow>;
  /** Begins a full sync: from now on events wait. Without a time the cutover is now. */
  startSync(id: string, cutoverTime: Date | null, actor: Actor, options?: DryRun): Promise<TenantRow>;
  /** Call it after the commit of whatever changed a tenant. */
  forget(id: string): void;
}

interface Introduction {
  code: string | undefined;
  name: string | undefined;
}

const CHANGED_TOPIC = "lineage.tenants";
const REMEMBER_MS = 10_000;
const REMEMBERED_MAX = 10_000;
const CODE_LENGTH_MAX = 64;
const NAME_LENGTH_MAX = 128;

export interface TenantsDeps {
  db: Db;
  wake: Wake;
  hints: LineageHints;
  clock: Clock;
  settings: Pick<LineageSettings, "createTenants" | "clockToleranceSeconds">;
}

export function createTenants({ db, wake, hints, clock, settings }: TenantsDeps): Tenants {
  /** Look-ups, so that many events of one tenant share one; one that a hint has cleared is asked again by the next. */
  const remembered = new Map<string, { tenant: Promise<Tenant | undefined>; until: number }>();
  wake.on(CHANGED_TOPIC, () => remembered.clear());

  const forget = () => wake.hint(CHANGED_TOPIC);
  const changed = (tx: Queryable, id: string) => hints.changed(tx, "tenant", id, { tenantId: id });

  function find(id: string): Promise<Tenant | undefined> {
    const known = remembered.get(id);
    if (known && known.until > clock.now()) return known.tenant;
    const lookup = { tenant: findTenant(db, id).then((row) => row && tenantOf(row)), until: clock.now() + REMEMBER_MS };
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    remembered.set(id, lookup);
    // Neither a failure nor an absence is remembered: the next event asks again.
    const drop = () => void (remembered.get(id) === lookup && remembered.delete(id));
    lookup.tenant.then((tenant) => tenant ?? drop(), drop);
    return lookup.tenant;
  }

  /** Without a baseline to wait for, so ready at once. */
  async function introduce(id: string, { code, name }: Introduction): Promise<Tenant | undefined> {
    const fallback = `t${id}`;
    const codes = new Set([storableText(code ?? "", CODE_LENGTH_MAX) || fallback, fallback]);
    for (const candidate of codes) {
      const tenant = {
        id,
        code: candidate,
        name: storableText(name ?? "", NAME_LENGTH_MAX) || candidate,
        state: "READY" as const,
        rateLimitPerMinute: null,
        bodyLimitBytes: null,
      };
      // Nothing if another process was faster, or if the code is another tenant's.
      const made = await insertTenant(db, tenant);
      if (made) changed(db, id);
      const row = made ?? (await findTenant(db, id));
      if (row) return tenantOf(row);
    }
    return undefined;
  }

  async function get(id: string): Promise<TenantRow> {
    const row = await findTenant(db, id);
    if (!row) throw notFound(id);
    return row;
  }

  return {
    find,
    list: (query) => listTenants(db, query),
    get,

    async admit(id, introduction) {
      const tenant = (await find(id)) ?? (settings.createTenants ? await introduce(id, introduction()) : undefined);
      if (!tenant) throw lineageError("TENANT_UNKNOWN", { tenantId: Number(id) });
      return tenant;
    },

    create: (tenant, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const { id, code, name, state } = tenant;
        const row = await insertTenant(tx, tenant);
        if (!row) throw lineageError("TENANT_EXISTS", {}, { what: `the id ${id} or the code \`${code}\`` });
        await audit(tx, actor, "tenant.create", id, { code, name, state });
        changed(tx, id);
        return row;
      }),

    async update(id, change, actor, options = FOR_REAL) {
      const row = await transact(db, options, async (tx) => {
        const before = await lockTenant(tx, id);
        const updated = await updateTenant(tx, id, change);
        if (before && updated) {
          const changes = auditedChanges(differences(auditedFields(before), auditedFields(updated)));
          await audit(tx, actor, "tenant.update", id, { name: updated.name, ...changes });
        }
        if (updated) tx.afterCommit(forget);
        if (updated) changed(tx, id);
        return updated;
      }).catch((error: unknown) => {
        if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
        throw lineageError("TENANT_EXISTS", {}, { what: `the code \`${change.code}\`` });
      });
      if (!row) throw notFound(id);
      return row;
    },

    async startSync(id, cutoverTime, actor, options = FOR_REAL) {
      if (cutoverTime && cutoverTime.getTime() > clock.now() + settings.clockToleranceSeconds * 1000) {
        throw invalid("The cutover is in the future: every event until then would be skipped");
      }
      const row = await transact(db, options, async (tx) => {
        // What a tenant does with its events changes under this lock only: those that are being taken come before it.
        await lockGraph(tx, id, "exclusive");
        const moved = await moveTenant(tx, id, "SYNCING", cutoverTime);
        if (moved) await audit(tx, actor, "tenant.sync-start", id, { cutoverTime: moved.cutover_time });
        if (moved) tx.afterCommit(forget);
        if (moved) changed(tx, id);
        return moved;
      });
      if (!row) {
        const { state } = await get(id);
        const hint = `Finish the sync that is under way with POST /api/v1/lineage/tenants/${id}:ready.`;
        throw lineageError("TENANT_WRONG_STATE", { tenantId: Number(id), state }, { verb: "start a sync of", hint });
      }
      return row;
    },

    forget(id) {
      forget();
      changed(db, id);
    },
  };
}

function auditedFields({ code, name, rate_limit_per_minute, body_limit_bytes }: TenantRow): object {
  return { code, name, rateLimitPerMinute: rate_limit_per_minute, bodyLimitBytes: body_limit_bytes };
}

function notFound(id: string): ApiError {
  return lineageError("TENANT_NOT_FOUND", { tenantId: id });
}

function tenantOf(row: TenantRow): Tenant {
  return {
    id: row.id,
    code: row.code,
    name: row.name,
    state: row.state,
    cutoverTime: row.cutover_time,
    rateLimitPerMinute: row.rate_limit_per_minute,
    bodyLimitBytes: row.body_limit_bytes,
    model: row.model,
  };
}
