/**
 * Extracts lineage from the events of engines, and from all that are not operations on metadata: tables, their columns, what
 * reads and writes them, and which column comes from which.
 */

import { RANK } from "../graph/facts.ts";
import { type AssetName, catalogName } from "../graph/names.ts";
import type { Dataset, ParsedEvent } from "../ingest/event.ts";
import { addColumnLineage } from "./column-lineage.ts";
import { gravitinoNamespace } from "./dataset-names.ts";
import { type Draft, textOf } from "./draft.ts";
import { type Identity, identitiesOf, outputPath } from "./identities.ts";
import { endedBy, hasHappened } from "./lifecycle.ts";
import { addDatasetLineage, addJobLineage, type Reading } from "./lineage-facet.ts";
import { addProcess } from "./process.ts";
import { addColumns, schemaColumns } from "./schema-facet.ts";
import { tableAttributes } from "./table-attributes.ts";

export function addLineage(event: ParsedEvent, draft: Draft): void {
  const identities = identitiesOf(event, draft);
  const reading: Reading = { event, process: addProcess(event, draft), identities, draft };
  const ended = addEndings(reading);

  for (const [index, dataset] of event.inputs.entries()) {
    const identity = identities.of(dataset);
    if (ended.has(textOf(identity.table))) continue;
    addDataset(dataset, identity, `/inputs/${index}/facets`, reading, undefined);
    if (reading.process) draft.edge("INPUT_OF", identity.table, reading.process);
  }
  for (const [index, dataset] of event.outputs.entries()) {
    const identity = identities.of(dataset);
    if (ended.has(textOf(identity.table))) continue;
    const writer = { producer: event.producer, process: reading.process };
    addDataset(dataset, identity, outputPath(event, index), reading, writer);
    if (reading.process) draft.edge("OUTPUT_TO", reading.process, identity.table);
  }
  addJobLineage(reading);
}

/** The sender of an event, where it is the writer of the dataset. */
interface Writer {
  producer: string | null;
  process: AssetName | undefined;
}

function addDataset(
  dataset: Dataset,
  identity: Identity,
  path: string,
  reading: Reading,
  writer: Writer | undefined,
): void {
  const { draft } = reading;
  const { table } = identity;
  draft.node(table, tableAttributes(dataset, identity, writer?.producer ?? null, path, draft));
  addMetalake(table, [identity.namespace, reading.event.job?.namespace], draft);
  addColumns(table, schemaColumns(dataset.facets, path, draft), writer ? RANK.writer : RANK.reader, draft);
  addColumnLineage(table, dataset.facets, path, reading, writer?.process);
  addDatasetLineage(table, dataset.facets, path, reading);
}

/**
 * A run that failed or has only begun has dropped and renamed nothing. Answers the tables that do not exist: those that were
 * dropped, and those that are yet to get the name that the event gives them.
 */
function addEndings({ event, identities, draft }: Reading): Set<string> {
  const ended = new Set<string>();
  const happened = hasHappened(event);
  for (const dataset of [...event.inputs, ...event.outputs]) {
    const ending = endedBy(dataset.facets);
    if (!ending) continue;
    const { table } = identities.of(dataset);
    if (ending.kind === "DROP") {
      if (!happened) continue;
      if (!ended.has(textOf(table))) draft.ends(table);
      ended.add(textOf(table));
      continue;
    }
    const previous = identities.named(ending.namespace, ending.name);
    if (textOf(previous) === textOf(table)) continue;
    if (happened) draft.reportsRename(previous, table);
    else ended.add(textOf(table));
  }
  return ended;
}

/** Only namespaces name the metalake of a catalog, and the events of catalogs themselves do not. */
function addMetalake(table: AssetName, namespaces: readonly (string | undefined)[], draft: Draft): void {
  const [origin, catalog] = table.path;
  if (origin !== "gravitino" || catalog === undefined) return;
  for (const namespace of namespaces) {
    const metalake = namespace === undefined ? undefined : gravitinoNamespace(namespace)?.metalake;
    if (metalake === undefined) continue;
    draft.node(catalogName("gravitino", catalog), { metalake });
    return;
  }
}
