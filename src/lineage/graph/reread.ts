/**
 * Applies a tenant's stored events again where a newer version reads more from them. A migration marks the tenants. Any process
 * continues, a page of assertions at a time; the position is stored with the tenant.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import { isTransient, type OnChange } from "../ingest/intake.ts";
import { lockGraph } from "../store/graph-lock.ts";
import { assertionsAfter, keysNamedBy, moveReread, nextReread, rereadAfter, type StoredTime } from "../store/reread.ts";
import { apply } from "./apply.ts";
import { connectedKeys, timedAssertions } from "./timed-assertions.ts";

export interface RereadDeps {
  db: Db;
  log: ServiceLog;
  onRun: OnRun;
  onChange: OnChange;
}

/** Migrations mark tenants before processes start, so later polls only find what a lost process left. */
const POLL_INTERVAL_MS = 300_000;
/** Small, because the tenant's own events wait meanwhile. */
const PAGE_ASSERTIONS = 50;

export function createReread({ db, log, onRun, onChange }: RereadDeps): Service {
  /** An assertion that cannot be applied is left as it is, and the others go on. */
  async function readSome(tenantId: string): Promise<number> {
    try {
      return await readPage(tenantId, PAGE_ASSERTIONS);
    } catch (error) {
      if (isTransient(error)) throw error;
      return readOne(tenantId);
    }
  }

  async function readOne(tenantId: string): Promise<number> {
    try {
      return await readPage(tenantId, 1);
    } catch (err) {
      if (isTransient(err)) throw err;
      log.error({ err, tenantId }, "a stored event could not be read again");
      return readPage(tenantId, 1, async () => {});
    }
  }

  /** Reads up to `limit` assertions, and answers how many. */
  function readPage(tenantId: string, limit: number, read = applyAgain): Promise<number> {
    return db.tx(async (tx) => {
      await lockGraph(tx, tenantId, "exclusive");
      const after = await rereadAfter(tx, tenantId);
      if (after === null) return 0; // Another process has finished meanwhile.
      const page = await assertionsAfter(tx, tenantId, after, limit);
      if (page.length > 0) await read(tx, tenantId, page);
      await moveReread(tx, tenantId, page.length < limit ? null : (page.at(-1)?.assertion ?? null));
      return page.length;
    });
  }

  async function applyAgain(tx: Tx, tenantId: string, page: readonly StoredTime[]): Promise<void> {
    const named = await keysNamedBy(
      tx,
      tenantId,
      page.map(({ assertion }) => assertion),
    );
    const assertions = await timedAssertions(tx, tenantId, page, await connectedKeys(tx, tenantId, named));
    const change = await apply(
      tx,
      tenantId,
      assertions.map((one) => ({ ...one, known: false })),
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
      if (tenantId === undefined) return { tenants: 0, assertions: 0 };
      return { tenants: 1, assertions: await readSome(tenantId) };
    },
    more: ({ tenants = 0 }) => tenants > 0,
  });
}
