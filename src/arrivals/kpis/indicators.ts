/** The use cases of indicators: define, show, delete. */

import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { auditedChanges } from "../../kernel/auth/audited-changes.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { invalid, kernelError } from "../../kernel/errors.ts";
import type { FindUser } from "../../kernel/in-use.ts";
import { differences } from "../../kernel/json/differences.ts";
import { unknownName } from "../../kernel/unknown-name.ts";
import { type ArrivalsHints, arrivalsError } from "../catalogue.ts";
import * as store from "../store/kpis.ts";
import { unknownKpi } from "../unknown-names.ts";
import { indicatorOf } from "./computed.ts";
import { compileFormula } from "./formula.ts";
import { createIndicatorGraph } from "./indicator-graph.ts";

export interface IndicatorInput {
  type: "EXTENDED" | "COMPUTED";
  name: string;
  expression?: string;
  dependsOn?: readonly string[];
}

export interface Indicators {
  put(
    kpiId: string,
    input: IndicatorInput,
    actor: Actor,
    options?: DryRun,
  ): Promise<{ kpi: store.KpiRow; created: boolean }>;
  get(kpiId: string): Promise<store.KpiRow>;
  list(query: store.ListKpis): ReturnType<typeof store.listKpis>;
  values(query: store.ListValues): ReturnType<typeof store.listValues>;
  remove(kpiId: string, actor: Actor, options?: DryRun): Promise<store.KpiRow>;
}

export interface IndicatorsDeps {
  db: Db;
  hints: ArrivalsHints;
  /** Who names an indicator, in words. */
  userOf: FindUser | undefined;
}

export function createIndicators({ db, hints, userOf }: IndicatorsDeps): Indicators {
  async function findOrThrow(reader: Queryable, kpiId: string): Promise<store.KpiRow> {
    const kpi = await store.findKpi(reader, kpiId);
    if (!kpi) throw await unknownKpi(reader, kpiId);
    return kpi;
  }

  return {
    get: (kpiId) => findOrThrow(db, kpiId),
    list: (query) => store.listKpis(db, query),
    async values(query) {
      const values = await store.listValues(db, query);
      // A list of nothing would look like a KPI that has no values yet.
      if (values.total === 0 && query.kpiId !== null) await findOrThrow(db, query.kpiId);
      return values;
    },

    async put(kpiId, input, actor, options = FOR_REAL) {
      const kpi = kpiWriteOf(kpiId, input);
      return transact(db, options, async (tx) => {
        await store.lockKpis(tx);
        const present = await store.findKpi(tx, kpiId);
        if (present?.model_id && kpi.type === "COMPUTED") {
          throw arrivalsError("KPI_FED_ALREADY", { kpiId, modelId: present.model_id });
        }
        await refuseUnknown(tx, kpi.depends_on);
        const graph = createIndicatorGraph((await store.computedKpis(tx)).map(indicatorOf));
        const cycle = graph.cycleWith(indicatorOf(kpi));
        if (cycle !== undefined) {
          const reason = `\`${kpiId}\` would be computed from itself: ${cycle}`;
          throw kernelError("VALIDATION_FAILED", { problem: "circle" }, { reason });
        }
        const isNew = await store.upsertKpi(tx, kpi);
        await audit(tx, actor, isNew ? "indicator.create" : "indicator.update", kpiId, {
          type: kpi.type,
          ...(present && auditedChanges(differences(auditedFields(present), auditedFields(kpi)))),
        });
        hints.changed(tx, "kpi", kpiId);
        return { kpi: await findOrThrow(tx, kpiId), created: isNew };
      });
    },

    remove: (kpiId, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        await store.lockKpis(tx);
        const kpi = await findOrThrow(tx, kpiId);
        const users = await store.dependingKpis(tx, [kpiId]);
        const user = users.find(({ depends_on }) => depends_on.includes(kpiId));
        const own = user?.kpi_id ?? kpi.model_id ?? undefined;
        const by = own ?? (await userOf?.(tx, "indicator", kpiId));
        if (by !== undefined) {
          throw arrivalsError("KPI_IN_USE", { kpiId, by }, { user: own === undefined ? by : `\`${own}\`` });
        }
        await store.deleteKpi(tx, kpiId);
        await audit(tx, actor, "indicator.delete", kpiId);
        hints.changed(tx, "kpi", kpiId);
        return kpi;
      }),
  };
}

function auditedFields({ type, name, expression, depends_on }: store.KpiWrite): object {
  return { type, name, expression, dependsOn: depends_on };
}

async function refuseUnknown(tx: Queryable, parts: readonly string[]): Promise<void> {
  const known = new Set((await store.kpiTypes(tx, parts)).map(({ kpi_id }) => kpi_id));
  const missing = parts.find((kpiId) => !known.has(kpiId));
  if (missing === undefined) return;
  throw unknownName({ field: "expression", what: "indicator", name: missing }, await store.allKpiIds(tx));
}

function kpiWriteOf(kpiId: string, { type, name, expression, dependsOn }: IndicatorInput): store.KpiWrite {
  if (type === "EXTENDED") {
    if (expression !== undefined || dependsOn !== undefined) {
      throw invalid("An EXTENDED indicator is fed by a model: leave out `expression` and `dependsOn`");
    }
    return { kpi_id: kpiId, type, name, expression: null, depends_on: [] };
  }
  if (expression === undefined) throw invalid("A COMPUTED indicator needs an `expression`, such as `KD1001 / KD1002`");
  const formula = compileFormula(kpiId, expression);
  if ("problems" in formula) throw invalid(formula.problems.join(" ").replace(/\.$/, ""));
  const used = [...formula.references];
  const unused = dependsOn?.filter((id) => !used.includes(id)) ?? [];
  const unnamed = dependsOn ? used.filter((id) => !dependsOn.includes(id)) : [];
  if (unused.length > 0) throw invalid(`\`dependsOn\` names ${unused.join(", ")}, but the expression does not use it`);
  if (unnamed.length > 0)
    throw invalid(`The expression uses ${unnamed.join(", ")}, but \`dependsOn\` does not name it`);
  return { kpi_id: kpiId, type, name, expression, depends_on: used };
}
