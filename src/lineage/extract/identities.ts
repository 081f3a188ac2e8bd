/**
 * Maps the datasets of an event to tables. A symlink of type TABLE is the table's name, and the dataset's own name is its location;
 * column lineage may use either. Within one event its own symlinks decide.
 */
import { isRecord } from "../../kernel/json/is-record.ts";
import type { AssetName } from "../graph/names.ts";
import type { Dataset, ParsedEvent } from "../ingest/event.ts";
import { datasetTable, gravitinoNamespace, gravitinoTable, isDatabase } from "./dataset-names.ts";
import type { Draft } from "./draft.ts";
import { facet, nameText } from "./facets.ts";

export interface Identity {
  table: AssetName;
  /** As the event has them, of the name that was chosen. */
  namespace: string;
  name: string;
}

export interface Identities {
  /** Of a dataset of the event. */
  of(dataset: Dataset): Identity;
  /** Of one that is named anywhere else in the event, by its own name or by a symlink of the event. */
  named(namespace: string, name: string): AssetName;
}

interface Symlink {
  namespace: string;
  name: string;
  isTable: boolean;
}

const SCHEMA_AND_TABLE = /^[^./]+\.[^./]+$/;

/** Adds the aliases to the draft, and mentions every name that is used. */
export function identitiesOf(event: ParsedEvent, draft: Draft): Identities {
  const catalog = event.job ? gravitinoNamespace(event.job.namespace)?.catalog : undefined;
  const chosen = new Map<Dataset, Identity>();
  const tables = new Map<string, Map<string, AssetName>>();

  function remember(namespace: string, name: string, table: AssetName): AssetName {
    const names = tables.get(namespace);
    if (names) names.set(name, table);
    else tables.set(namespace, new Map([[name, table]]));
    return table;
  }

  function take(dataset: Dataset, path: string): void {
    const { namespace, name } = dataset;
    const own = datasetTable(namespace, name);
    const symlinks = symlinksOf(dataset, path, draft);
    // Where Gravitino itself names the dataset, the other names of the table have to measure up to its own.
    const isManaged = own.path[0] === "gravitino";
    const names = isManaged ? [{ namespace, name, isTable: true }, ...symlinks] : symlinks;
    const identity = logical(names, catalog) ?? { table: own, namespace, name };
    chosen.set(dataset, identity);
    remember(namespace, name, identity.table);
    draft.mention(identity.table);
    otherName(own, identity.table);
    for (const symlink of symlinks) {
      remember(symlink.namespace, symlink.name, identity.table);
      otherName(datasetTable(symlink.namespace, symlink.name), identity.table);
    }
  }

  function otherName(name: AssetName, table: AssetName): void {
    draft.mention(name);
    draft.alias(name, table);
  }

  for (const [index, dataset] of event.inputs.entries()) take(dataset, `/inputs/${index}/facets`);
  for (const [index, dataset] of event.outputs.entries()) take(dataset, outputPath(event, index));

  return {
    of: (dataset) => chosen.get(dataset) as Identity,
    named(namespace, name) {
      const known = tables.get(namespace)?.get(name);
      if (known) return known;
      const table = remember(namespace, name, datasetTable(namespace, name));
      draft.mention(table);
      return table;
    },
  };
}

export function outputPath({ kind }: ParsedEvent, index: number): string {
  return kind === "DATASET_EVENT" ? "/dataset/facets" : `/outputs/${index}/facets`;
}

function symlinksOf({ facets }: Dataset, path: string, draft: Draft): Symlink[] {
  const identifiers = facet(facets, "symlinks")?.["identifiers"];
  if (identifiers === undefined) return [];
  if (!Array.isArray(identifiers)) {
    draft.warn(`${path}/symlinks/identifiers`, "is not a list");
    return [];
  }
  const symlinks: Symlink[] = [];
  for (const [index, identifier] of identifiers.entries()) {
    const namespace = isRecord(identifier) ? nameText(identifier["namespace"]) : undefined;
    const name = isRecord(identifier) ? nameText(identifier["name"]) : undefined;
    if (namespace === undefined || name === undefined) {
      draft.warn(`${path}/symlinks/identifiers/${index}`, "has no namespace or no name");
      continue;
    }
    symlinks.push({ namespace, name, isTable: isRecord(identifier) && identifier["type"] === "TABLE" });
  }
  return symlinks;
}

/**
 * One table may have several such names: Gravitino's comes first, then what is Gravitino's by the job's catalog, then one in
 * a database, then a path. Among equals the text decides, since producers list them in any order and two events must choose
 * the same.
 */
function logical(names: readonly Symlink[], catalog: string | undefined): Identity | undefined {
  let best: (Identity & { rank: number }) | undefined;
  for (const { namespace, name, isTable } of names) {
    if (!isTable) continue;
    const { table, rank } = ranked(namespace, name, catalog);
    const isBetter =
      !best || rank < best.rank || (rank === best.rank && `${namespace} ${name}` < `${best.namespace} ${best.name}`);
    if (isBetter) best = { table, namespace, name, rank };
  }
  return best;
}

function ranked(namespace: string, name: string, catalog: string | undefined): { table: AssetName; rank: number } {
  const table = datasetTable(namespace, name);
  if (table.path[0] === "gravitino") return { table, rank: 0 };
  if (catalog !== undefined && SCHEMA_AND_TABLE.test(name)) return { table: gravitinoTable(catalog, name), rank: 1 };
  return { table, rank: isDatabase(namespace) ? 2 : 3 };
}
