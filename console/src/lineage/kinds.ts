/** The kinds of assets: their icons, which of them have data before and after them, and what they lie in. */
import type { IconName } from "../parts/controls/icons.tsx";
import type { Kind } from "./api.ts";

const ICONS: Readonly<Partial<Record<Kind, IconName>>> = {
  TABLE: "arrivals",
  COLUMN: "column",
  SQL: "code",
  JOB: "play",
  METRIC: "overview",
  SCHEMA: "database",
  CATALOG: "database",
};
export function iconOf(kind: Kind): IconName {
  return ICONS[kind] ?? "tag";
}

/** Kinds that have data before and after them. */
export function hasLineage(kind: Kind): boolean {
  return ["TABLE", "COLUMN", "SQL", "JOB", "METRIC"].includes(kind);
}

type Placed = { kind: Kind; path: readonly string[] };

/** What an asset lies in, with the origin left out. */
export function placeOf({ kind, path }: Placed): string {
  if (kind === "SQL" || kind === "JOB") return path[0] ?? "";
  return path.slice(1, -1).filter(Boolean).join(".");
}

/** The nearest of what it lies in: a table of a column, a schema of a table. Catalogs are long, and mostly the same. */
export function nearPlaceOf({ kind, path }: Placed): string {
  if (kind === "SQL" || kind === "JOB") return path[0] ?? "";
  return path.slice(2, -1).filter(Boolean).join(".") || placeOf({ kind, path });
}
