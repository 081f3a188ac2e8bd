/** Finds models, KPIs and tables by a part of their id or name. */
import { call, pathTo, withQuery } from "../api/client.ts";
import type { Finder, Found } from "../app/found.ts";
import { language } from "../words/words.ts";
import { type CellsReply, type Kpi, type Model, type Paged, paths } from "./api.ts";
import { arrivals } from "./words.ts";

const FOUND_MAX = 8;

export const arrivalFinder: Finder = {
  icon: "arrivals",
  scope: "kpi:read",
  async find(query, signal) {
    const asked = { q: query, size: FOUND_MAX };
    const [models, kpis, tables] = await Promise.all([
      call<Paged<Model>>(paths.models(asked), { signal }),
      call<Paged<Kpi>>(paths.kpis(asked), { signal }),
      // One opTime: only the names are of interest.
      call<CellsReply>(paths.cells({ by: "table", q: query, last: 1, limit: FOUND_MAX }), { signal }),
    ]);
    const text = arrivals[language.get()];
    return [
      ...models.data.items.map(({ modelId, name }) =>
        found(modelId, text.model, name, pathTo`/arrivals/models/${modelId}`),
      ),
      ...kpis.data.items.map(({ kpiId, name }) => found(kpiId, text.toKpi, name, pathTo`/arrivals/kpis/${kpiId}`)),
      ...tables.data.rows.map(({ name }) => found(name, text.table, "", withQuery("/arrivals", { q: name }))),
    ];
  },
};

function found(id: string, kind: string, name: string, to: string): Found {
  return { title: id, detail: [kind, name].filter(Boolean).join(" · "), to };
}
