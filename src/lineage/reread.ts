/**
 * Reads a tenant's stored events again where a newer version finds more in them than the one that applied them. A migration marks
 * the tenants; any process goes on with one, a page of tellings at a time, and how far it has come is kept with the tenant.
 */
import type { Db, Tx } from "../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../kernel/work/service.ts";
import { apply } from "./apply.ts";
import { mayPass, type OnChange } from "./intake.ts";
import { lockGraph } from "./store/graph-lock.ts";
import { keysNamedBy, moveReread, nextReread, rereadAfter, type StoredTime, tellingsAfter } from "./store/reread.ts";
import { connectedKeys, timedTellings } from "./timed-tellings.ts";

export interface RereadDeps {
  db: Db;
  log: ServiceLog;
  onRun: OnRun;
  onChange: OnChange;
}

/** Migrations mark tenants before processes start, so this only finds what a lost process left. */
const POLL_INTERVAL_MS = 300_000;
/** The tenant's own events wait meanwhile. */
const PAGE_TELLINGS = 50;

export function createReread({ db, log, onRun, onChange }: RereadDeps): Service {
  /** A telling that cannot be applied is left as it is, and the others go on. */
  async function readSome(tenantId: string): Promise<number> {
    try {
      return await readPage(tenantId, PAGE_TELLINGS);
    } catch (error) {
      if (mayPass(error)) throw error;
      return readOne(tenantId);
    }
  }

  async function readOne(tenantId: string): Promise<number> {
    try {
      return await readPage(tenantId, 1);
    } catch (err) {
      if (mayPass(err)) throw err;
      log.error({ err, tenantId }, "a stored event could not be read again");
      return readPage(tenantId, 1, async () => {});
    }
  }

  /** Reads up to `limit` tellings, and answers how many. */
  function readPage(tenantId: string, limit: number, read = applyAgain): Promise<number> {
    return db.tx(async (tx) => {
      await lockGraph(tx, tenantId, "alone");
      const after = await rereadAfter(tx, tenantId);
      if (after === null) return 0; // Another process has come to the end meanwhile.
      const page = await tellingsAfter(tx, tenantId, after, limit);
      if (page.length > 0) await read(tx, tenantId, page);
      await moveReread(tx, tenantId, page.length < limit ? null : (page.at(-1)?.telling ?? null));
      return page.length;
    });
  }

  async function applyAgain(tx: Tx, tenantId: string, page: readonly StoredTime[]): Promise<void> {
    const named = await keysNamedBy(
      tx,
      tenantId,
      page.map(({ telling }) => telling),
    );
    const told = await timedTellings(tx, tenantId, page, await connectedKeys(tx, tenantId, named));
    const change = await apply(
      tx,
      tenantId,
      told.map((one) => ({ ...one, known: false })),
    );
    await onChange(tx, tenantId, change);
  }

  return createService({
    name: "lineage.reread",
    intervalMs: POLL_INTERVAL_MS,
    log,
    onRun,
    async runOnce() {
      const tenantId = await nextReread(db);
      if (tenantId === undefined) return { tenants: 0, tellings: 0 };
      return { tenants: 1, tellings: await readSome(tenantId) };
    },
    more: ({ tenants = 0 }) => tenants > 0,
  });
}
