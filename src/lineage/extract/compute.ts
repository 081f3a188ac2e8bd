/**
 * Events of engines that move data, and all that are not operations on metadata: what tables exist, how they look, what read
 * and wrote them, and which column comes from which.
 */
import type { Dataset, ParsedEvent } from "../event.ts";
import { type AssetName, catalogName } from "../names.ts";
import { claimColumnLineage } from "./column-lineage.ts";
import { gravitinoNamespace } from "./dataset-names.ts";
import { type Draft, textOf } from "./draft.ts";
import { type Identity, identitiesOf, outputPath } from "./identities.ts";
import { endedBy, hasHappened } from "./lifecycle.ts";
import { claimDatasetLineage, claimJobLineage, type Reading } from "./lineage-facet.ts";
import { claimProcess } from "./process.ts";
import { claimColumns, schemaColumns } from "./schema-facet.ts";
import { tableAttributes } from "./table-attributes.ts";

export function claimLineage(event: ParsedEvent, draft: Draft): void {
  const identities = identitiesOf(event, draft);
  const reading: Reading = { event, process: claimProcess(event, draft), identities, draft };
  const ended = claimEndings(reading);

  for (const [index, dataset] of event.inputs.entries()) {
    const identity = identities.of(dataset);
    if (ended.has(textOf(identity.table))) continue;
    claimDataset(dataset, identity, `/inputs/${index}/facets`, reading, {});
    if (reading.process) draft.edge("INPUT_OF", identity.table, reading.process);
  }
  for (const [index, dataset] of event.outputs.entries()) {
    const identity = identities.of(dataset);
    if (ended.has(textOf(identity.table))) continue;
    const writer = { producer: event.producer, process: reading.process };
    claimDataset(dataset, identity, outputPath(event, index), reading, writer);
    if (reading.process) draft.edge("OUTPUT_TO", reading.process, identity.table);
  }
  claimJobLineage(reading);
}

/** Whoever sends an event about what it writes. */
interface Writer {
  producer?: string | null;
  process?: AssetName | undefined;
}

function claimDataset(
  dataset: Dataset,
  identity: Identity,
  path: string,
  reading: Reading,
  { producer = null, process }: Writer,
): void {
  const { draft } = reading;
  const { table } = identity;
  draft.node(table, tableAttributes(dataset, identity, producer, path, draft));
  claimMetalake(table, [identity.namespace, reading.event.job?.namespace], draft);
  claimColumns(table, schemaColumns(dataset.facets, path, draft), draft);
  claimColumnLineage(table, dataset.facets, path, reading, process);
  claimDatasetLineage(table, dataset.facets, path, reading);
}

/**
 * A run that failed or has only begun has dropped and renamed nothing. Answers the tables that do not exist: those that were
 * dropped, and those that are yet to get the name that the event gives them.
 */
function claimEndings({ event, identities, draft }: Reading): Set<string> {
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

/** The metalake of a catalog is told by namespaces alone, and by those of catalogs' own events never. */
function claimMetalake(table: AssetName, namespaces: readonly (string | undefined)[], draft: Draft): void {
  const [origin, catalog] = table.path;
  if (origin !== "gravitino" || catalog === undefined) return;
  for (const namespace of namespaces) {
    const metalake = namespace === undefined ? undefined : gravitinoNamespace(namespace)?.metalake;
    if (metalake === undefined) continue;
    draft.node(catalogName("gravitino", catalog), { metalake });
    return;
  }
}
