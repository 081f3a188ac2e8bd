/**
 * Operations on metadata, as Gravitino's listener tells them: each event is one operation on one asset, named by the job
 * (`gravitino.create_table`). Its attributes lie in the `gravitino` facet or, for semantic assets, in the schema facet.
 */
import type { Dataset, ParsedEvent } from "../event.ts";
import { type AssetName, catalogName, schemaName } from "../names.ts";
import { applyChanges } from "./alter-table.ts";
import { datasetTable, gravitinoNamespace, gravitinoTable } from "./dataset-names.ts";
import type { Draft } from "./draft.ts";
import { facet, given, text } from "./facets.ts";
import { commonAttributes, tableState } from "./gravitino-facet.ts";
import { outputPath } from "./identities.ts";
import { hasHappened } from "./lifecycle.ts";
import { claimProcess } from "./process.ts";
import { claimColumns } from "./schema-facet.ts";
import { claimMetric, claimTerm, metricName, type TermKind, termName } from "./semantic.ts";
import type { Source } from "./source.ts";
import { claimMetalake, type Subject } from "./subject.ts";
import { claimAssociation } from "./tags.ts";

const PREFIX = "gravitino.";

/** The operation that Gravitino tells of, if it is that. */
export function operationOf({ job }: ParsedEvent, source: Source): string | undefined {
  return source === "GRAVITINO" && job?.name.startsWith(PREFIX) ? job.name.slice(PREFIX.length) : undefined;
}

export function claimOperation(operation: string, event: ParsedEvent, draft: Draft): void {
  if (!hasHappened(event)) return;
  const claim = OPERATIONS.get(operation);
  if (!claim) {
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
    claim({ event, dataset, path, metalake, catalog, tables, draft });
  }
  if (tables.size > 0) claimStatement(event, tables, draft);
}

type Claim = (subject: Subject) => void;

const OPERATIONS: ReadonlyMap<string, Claim> = new Map<string, Claim>([
  ["create_catalog", claimCatalog],
  ["alter_catalog", claimCatalog],
  ["drop_catalog", drop(({ dataset }) => catalogName("gravitino", dataset.name))],
  ["create_schema", inCatalog(claimSchema)],
  ["alter_schema", inCatalog(claimSchema)],
  ["load_schema", inCatalog(claimSchema)],
  ["drop_schema", inCatalog(drop(({ catalog, dataset }) => schemaName("gravitino", catalog, dataset.name)))],
  ["create_table", inCatalog(claimTable)],
  ["load_table", inCatalog(claimTable)],
  ["alter_table", inCatalog(claimTable)],
  ["drop_table", inCatalog(drop(({ catalog, dataset }) => gravitinoTable(catalog, dataset.name)))],
  ["register_metric", inCatalog(claimMetric)],
  ["alter_metric", inCatalog(claimMetric)],
  ["drop_metric", inCatalog(drop(metricName))],
  ...termOperations("wordroot", "WORDROOT"),
  ...termOperations("modifier", "MODIFIER"),
  ...termOperations("unit", "UNIT"),
  ...termOperations("valuedomain", "VALUEDOMAIN"),
  ...termOperations("tag", "TAG"),
  ["associate_tags", claimAssociation],
]);

function termOperations(word: string, kind: TermKind): [string, Claim][] {
  const claim = (subject: Subject) => claimTerm(kind, subject);
  return [
    [`create_${word}`, claim],
    [`alter_${word}`, claim],
    [`drop_${word}`, drop((subject) => termName(kind, subject))],
  ];
}

function drop(nameOf: (subject: Subject) => AssetName): Claim {
  return (subject) => {
    const name = nameOf(subject);
    subject.draft.mention(name);
    subject.draft.ends(name);
  };
}

function inCatalog(claim: Claim): Claim {
  return (subject) => {
    if (subject.catalog !== "") claim(subject);
    else subject.draft.warn(subject.path.replace(/facets$/, "namespace"), "names no catalog of Gravitino");
  };
}

function claimCatalog({ dataset, metalake, draft }: Subject): void {
  const name = catalogName("gravitino", dataset.name);
  const { catalogType, provider } = facet(dataset.facets, "gravitino") ?? {};
  draft.mention(name);
  draft.node(name, {
    ...commonAttributes(dataset.facets),
    ...given({ metalake, catalogType: text(catalogType), provider: text(provider) }),
  });
}

function claimSchema(subject: Subject): void {
  const name = schemaName("gravitino", subject.catalog, subject.dataset.name);
  subject.draft.mention(name);
  subject.draft.node(name, commonAttributes(subject.dataset.facets));
  claimMetalake(subject);
}

/** Also an altered one: its facets may tell how it was before the changes or how it is after them, so they are applied. */
function claimTable(subject: Subject): void {
  const { dataset, catalog, path, event, tables, draft } = subject;
  const before = gravitinoTable(catalog, dataset.name);
  const state = tableState(dataset.facets, path, draft);
  const changes = facet(dataset.facets, "gravitino")?.["changes"];
  const table =
    changes === undefined ? before : applyChanges(before, state, changes, `${path}/gravitino/changes`, draft);
  draft.mention(before);
  draft.mention(table);
  draft.node(table, { ...state.attributes, ...given({ producer: event.producer ?? undefined }) });
  claimMetalake(subject);
  claimColumns(table, state.columns, draft);
  tables.set(dataset, table);
}

/** The statement that made or filled the tables, where one is told. */
function claimStatement(event: ParsedEvent, tables: ReadonlyMap<Dataset, AssetName>, draft: Draft): void {
  if (!event.job || text(facet(event.job.facets, "sql")?.["query"]) === undefined) return;
  const process = claimProcess(event, draft);
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
