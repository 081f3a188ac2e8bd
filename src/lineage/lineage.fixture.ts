/** Ingest on a real database, for tests that send events and look at the graph. */

import { readFileSync } from "node:fs";
import type { TestDatabase } from "../../test/database.ts";
import { noHints } from "../../test/no-hints.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { systemClock } from "../kernel/time/clock.ts";
import { CATALOGUE } from "./catalogue.ts";
import type { Json } from "./events.fixture.ts";
import type { Source } from "./extract/index.ts";
import { parseEvent } from "./ingest/event.ts";
import { createIngest, type Ingest, type IngestDeps, type Taken } from "./ingest/ingest.ts";

export interface TestLineage {
  ingest: Ingest;
  /** Makes a tenant and tells its id. */
  tenant(state?: "NEW" | "SYNCING" | "READY"): Promise<string>;
  /** `body` is its text, where that matters. */
  send(tenantId: string, event: Json, how?: { source?: Source; baseline?: boolean; body?: string }): Promise<Taken>;
  /** What is in the graph, in names alone: two graphs are the same if this is the same. */
  graph(tenantId: string): Promise<GraphInNames>;
  /** What must never be: each as one line. */
  flaws(tenantId: string): Promise<string[]>;
}

export interface GraphInNames {
  nodes: Record<string, Json>;
  edges: string[];
  executions: Record<string, number>;
}

const SETTINGS = { waitingMax: 10_000, waitingBytesMax: 2 ** 30, clockToleranceSeconds: 0 };

const FLAWS = `
  select 'an edge of what is gone: ' || e.kind as flaw from lineage.edge e
  join lineage.node n on n.tenant_id = e.tenant_id and n.id in (e.src, e.dst) and n.deleted_at is not null
  where e.tenant_id = $1
  union all
  select 'in something that is gone: ' || n.kind || ' ' || n.name from lineage.node n
  join lineage.node p on p.tenant_id = n.tenant_id and p.id = n.parent_id and p.deleted_at is not null
  where n.tenant_id = $1 and n.deleted_at is null
  union all
  select 'not below its own name: ' || array_to_string(n.path, '/') from lineage.node n
  join lineage.node p on p.tenant_id = n.tenant_id and p.id = n.parent_id
  where n.tenant_id = $1 and n.deleted_at is null and n.path[:cardinality(p.path)] <> p.path
  union all
  select 'in nothing: ' || n.kind || ' ' || n.name from lineage.node n
  where n.tenant_id = $1 and n.deleted_at is null and n.parent_id is null and n.kind in ('SCHEMA', 'TABLE', 'COLUMN', 'METRIC')`;

export function testLineage(database: TestDatabase, deps: Partial<IngestDeps> = {}): TestLineage {
  let ingest: Ingest | undefined;
  const theIngest = () => {
    ingest ??= createIngest({
      db: database.db,
      hints: noHints,
      clock: systemClock,
      metrics: createMetrics().define(CATALOGUE.metrics),
      settings: SETTINGS,
      onChange: async () => {},
      ...deps,
    });
    return ingest;
  };
  let tenants = 0;
  return {
    get ingest() {
      return theIngest();
    },
    async tenant(state = "READY") {
      tenants += 1;
      const id = String(1_000 + tenants);
      await database.query(
        `insert into lineage.tenant (id, code, name, state, cutover_time)
         values ($1, $2, $3, $4, $5)`,
        [id, `t${id}`, `Tenant ${id}`, state, state === "SYNCING" ? "2026-01-01T00:00:00Z" : null],
      );
      return id;
    },
    send: (tenantId, event, { source = "GRAVITINO", baseline = false, body = JSON.stringify(event) } = {}) =>
      theIngest().take(
        { id: tenantId, code: `t${tenantId}`, name: `Tenant ${tenantId}` },
        theIngest().prepare(tenantId, { event: parseEvent(event), body, source, baseline }),
      ),
    async graph(tenantId) {
      const nodes = await database.query<{ name: string; attributes: Json }>(
        `select kind || ' ' || array_to_string(path, '/') as name, attributes from lineage.node
         where tenant_id = $1 and deleted_at is null order by 1`,
        [tenantId],
      );
      const edges = await database.query<{ edge: string }>(
        `select s.kind || ' ' || array_to_string(s.path, '/') || ' ' || r.kind || ' ' || d.kind || ' ' ||
                array_to_string(d.path, '/') || ' ' || coalesce(array_to_string(e.transformations, ','), '') as edge
         from lineage.relationship r
         join lineage.node s on s.tenant_id = r.tenant_id and s.id = r.src
         join lineage.node d on d.tenant_id = r.tenant_id and d.id = r.dst
         left join lineage.edge e on e.tenant_id = r.tenant_id and e.src = r.src and e.kind = r.kind and e.dst = r.dst
         where r.tenant_id = $1 order by 1`,
        [tenantId],
      );
      const executions = await database.query<{ name: string; executions: string }>(
        `select array_to_string(n.path, '/') as name, c.executions::text from lineage.execution_count c
         join lineage.node n on n.tenant_id = c.tenant_id and n.id = c.node_id where c.tenant_id = $1 order by 1`,
        [tenantId],
      );
      return {
        nodes: Object.fromEntries(nodes.map(({ name, attributes }) => [name, attributes])),
        edges: edges.map(({ edge }) => edge.trim()),
        executions: Object.fromEntries(executions.map((row) => [row.name, Number(row.executions)])),
      };
    },
    async flaws(tenantId) {
      const rows = await database.query<{ flaw: string }>(FLAWS, [tenantId]);
      return rows.map(({ flaw }) => flaw);
    },
  };
}

/** The text of a migration, to be run again on the present schema: 000040 has renamed what older ones call a telling. */
export function migrationSql(name: string): string {
  const sql = readFileSync(new URL(`../../sql/${name}.sql`, import.meta.url), "utf8");
  return sql.replaceAll("telling", "assertion");
}
