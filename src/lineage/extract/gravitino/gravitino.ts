/**
 * Operations on metadata from Gravitino's listener: each event is one operation on one asset, named by the job
 * (`gravitino.create_table`). Attributes are in the `gravitino` facet or, for semantic assets, in the schema facet.
 */

import { RANK } from "../../graph/facts.ts";
import { type AssetName, catalogName, schemaName } from "../../graph/names.ts";
import type { Dataset, ParsedEvent } from "../../ingest/event.ts";
import { datasetTable, gravitinoNamespace, gravitinoTable } from "../dataset-names.ts";
import type { Draft } from "../draft.ts";
import { facet, given, text } from "../facets.ts";
import { outputPath } from "../identities.ts";
import { hasHappened } from "../lifecycle.ts";
import { addProcess } from "../process.ts";
import { addColumns } from "../schema-facet.ts";
import type { Source } from "../source.ts";
import { applyChanges } from "./alter-table.ts";
import { commonAttributes, tableState } from "./gravitino-facet.ts";
import { addMetric, addTerm, metricName, type TermKind, termName } from "./semantic.ts";
import { addMetalake, type Subject } from "./subject.ts";
import { addAssociation } from "./tags.ts";

const PREFIX = "gravitino.";

/** The operation on metadata, if the event is one. */
export function operationOf({ job }: ParsedEvent, source: Source): string | undefined {
  return source === "GRAVITINO" && job?.name.startsWith(PREFIX) ? job.name.slice(PREFIX.length) : undefined;
}

export function addOperation(operation: string, event: ParsedEvent, draft: Draft): void {
  if (!hasHappened(event)) return;
  const extract = OPERATIONS.get(operation);
  if (!extract) {
    draft.warn("/job/name", `is no operation that is known: ${operation}`);
    return;
  }
  // What is loaded comes as an input; next to an output, inputs are what a statement made it of.
  const datasets = event.outputs.length > 0 ? event.outputs : event.inputs;
  if (datasets.length === 0) draft.warn("/outputs", "is empty");
  const tables = new Map<Dataset, AssetName>();
  for (const [index, dataset] of datasets.entries()) {
    const path = event.outputs.length > 0 ? outputPath(event, index) : `/inputs/${index}/facets`;
    const { metalake, catalog = "" } = gravitinoNamespace(dataset.namespace) ?? {};
    extract({ event, dataset, path, metalake, catalog, tables, draft });
  }
  if (tables.size > 0) addStatement(event, tables, draft);
}

type Extractor = (subject: Subject) => void;

const OPERATIONS: ReadonlyMap<string, Extractor> = new Map<string, Extractor>([
  ["create_catalog", addCatalog],
  ["alter_catalog", addCatalog],
  ["drop_catalog", drop(({ dataset }) => catalogName("gravitino", dataset.name))],
  ["create_schema", inCatalog(addSchema)],
  ["alter_schema", inCatalog(addSchema)],
  ["load_schema", inCatalog(addSchema)],
  ["drop_schema", inCatalog(drop(({ catalog, dataset }) => schemaName("gravitino", catalog, dataset.name)))],
  ["create_table", inCatalog(addTable)],
  ["load_table", inCatalog(addTable)],
  ["alter_table", inCatalog(addTable)],
  ["drop_table", inCatalog(drop(({ catalog, dataset }) => gravitinoTable(catalog, dataset.name)))],
  ["register_metric", inCatalog(addMetric)],
  ["alter_metric", inCatalog(addMetric)],
  ["drop_metric", inCatalog(drop(metricName))],
  ...termOperations("wordroot", "WORDROOT"),
  ...termOperations("modifier", "MODIFIER"),
  ...termOperations("unit", "UNIT"),
  ...termOperations("valuedomain", "VALUEDOMAIN"),
  ...termOperations("tag", "TAG"),
  ["associate_tags", addAssociation],
]);

function termOperations(word: string, kind: TermKind): [string, Extractor][] {
  const extract = (subject: Subject) => addTerm(kind, subject);
  return [
    [`create_${word}`, extract],
    [`alter_${word}`, extract],
    [`drop_${word}`, drop((subject) => termName(kind, subject))],
  ];
}

function drop(nameOf: (subject: Subject) => AssetName): Extractor {
  return (subject) => {
    const name = nameOf(subject);
    subject.draft.mention(name);
    subject.draft.ends(name);
  };
}

function inCatalog(extract: Extractor): Extractor {
  return (subject) => {
    if (subject.catalog !== "") extract(subject);
    else subject.draft.warn(subject.path.replace(/facets$/, "namespace"), "names no catalog of Gravitino");
  };
}

function addCatalog({ dataset, metalake, draft }: Subject): void {
  const name = catalogName("gravitino", dataset.name);
  const { catalogType, provider } = facet(dataset.facets, "gravitino") ?? {};
  draft.mention(name);
  draft.node(name, {
    ...commonAttributes(dataset.facets),
    ...given({ metalake, catalogType: text(catalogType), provider: text(provider) }),
  });
}

function addSchema(subject: Subject): void {
  const name = schemaName("gravitino", subject.catalog, subject.dataset.name);
  subject.draft.mention(name);
  subject.draft.node(name, commonAttributes(subject.dataset.facets));
  addMetalake(subject);
}

/** Also an altered one: its facets may describe it before or after the changes, so the changes are applied. */
function addTable(subject: Subject): void {
  const { dataset, catalog, path, event, tables, draft } = subject;
  const before = gravitinoTable(catalog, dataset.name);
  const state = tableState(dataset.facets, path, draft);
  const changes = facet(dataset.facets, "gravitino")?.["changes"];
  const table =
    changes === undefined ? before : applyChanges(before, state, changes, `${path}/gravitino/changes`, draft);
  draft.mention(before);
  draft.mention(table);
  const attributes = { ...state.attributes, ...given({ producer: event.producer ?? undefined }) };
  draft.node(table, attributes, state.members.length > 0 ? { members: state.members } : undefined);
  addMetalake(subject);
  addColumns(table, state.columns, RANK.catalog, draft);
  tables.set(dataset, table);
}

/** The statement that created or filled the tables, if the event has one. */
function addStatement(event: ParsedEvent, tables: ReadonlyMap<Dataset, AssetName>, draft: Draft): void {
  if (!event.job || text(facet(event.job.facets, "sql")?.["query"]) === undefined) return;
  const process = addProcess(event, draft);
  if (!process) return;
  for (const input of event.inputs) {
    const source = tables.get(input) ?? datasetTable(input.namespace, input.name);
    draft.mention(source);
    draft.edge("INPUT_OF", source, process);
  }
  for (const output of event.outputs) {
    const table = tables.get(output);
    if (table) draft.edge("OUTPUT_TO", process, table);
  }
}
