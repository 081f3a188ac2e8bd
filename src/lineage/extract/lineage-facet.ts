/**
 * The explicit `lineage` facet: on a dataset, its inputs; on a job, targets with the inputs of each. It is more precise than the
 * lists of inputs and outputs, which do not say which input went into which output.
 *
 *     a table or column from a table or column    DERIVES_FROM, also between the tables of columns; on a job instead
 *                                                 INPUT_OF and OUTPUT_TO it
 *     a table or column from a job                OUTPUT_TO from that job to the table
 *     a job from a table or column                INPUT_OF from the table to that job
 *     a job from a job                            DERIVES_FROM between the two
 */
import { isRecord } from "../../kernel/json/is-record.ts";
import { type AssetName, columnName } from "../graph/names.ts";
import type { Facets, ParsedEvent } from "../ingest/event.ts";
import { type Draft, textOf } from "./draft.ts";
import { facet, nameText } from "./facets.ts";
import type { Identities } from "./identities.ts";
import { jobName } from "./process.ts";
import { transformationTexts } from "./transformations.ts";

const INPUTS_MAX = 50_000;

export interface Reading {
  event: ParsedEvent;
  /** The statement or job of the event. */
  process: AssetName | undefined;
  identities: Identities;
  draft: Draft;
}

interface Target {
  /** The table or job as a whole. */
  asset: AssetName;
  /** The job that moves data from tables to this table, if the facet is on a job. */
  through: AssetName | undefined;
}

export function addDatasetLineage(table: AssetName, facets: Facets, path: string, reading: Reading): void {
  const lineage = facet(facets, "lineage");
  if (lineage) addTarget({ asset: table, through: undefined }, lineage, `${path}/lineage`, reading);
}

export function addJobLineage(reading: Reading): void {
  const { event, process, draft } = reading;
  const entries = event.job && facet(event.job.facets, "lineage")?.["entries"];
  if (!entries) return;
  const path = "/job/facets/lineage/entries";
  if (!Array.isArray(entries)) {
    draft.warn(path, "is not a list");
    return;
  }
  for (const [index, entry] of entries.slice(0, INPUTS_MAX).entries()) {
    const asset = isRecord(entry) ? entityOf(entry, reading) : undefined;
    if (!asset) {
      draft.warn(`${path}/${index}`, "names no dataset or job");
      continue;
    }
    draft.node(asset, {});
    addTarget(
      { asset, through: asset.kind === "TABLE" ? process : undefined },
      entry as Facets,
      `${path}/${index}`,
      reading,
    );
  }
}

function addTarget(target: Target, { inputs, fields }: Facets, path: string, reading: Reading): void {
  addInputs(target, target.asset, inputs, `${path}/inputs`, reading);
  if (!isRecord(fields) || target.asset.kind !== "TABLE") return;
  for (const [field, entry] of Object.entries(fields)) {
    const column = nameText(field);
    if (column === undefined || !isRecord(entry)) reading.draft.warn(`${path}/fields/${field}`, "has no inputs");
    else
      addInputs(target, columnName(target.asset, column), entry["inputs"], `${path}/fields/${field}/inputs`, reading);
  }
}

function addInputs(target: Target, derived: AssetName, inputs: unknown, path: string, reading: Reading): void {
  if (inputs === undefined || inputs === null) return;
  if (!Array.isArray(inputs)) {
    reading.draft.warn(path, "is not a list");
    return;
  }
  for (const [index, input] of inputs.slice(0, INPUTS_MAX).entries()) {
    const source = isRecord(input) ? entityOf(input, reading) : undefined;
    if (source) addInput(target, derived, source, input as Facets, reading.draft);
    else reading.draft.warn(`${path}/${index}`, "names no dataset or job");
  }
}

function addInput(
  { asset, through }: Target,
  derived: AssetName,
  source: AssetName,
  input: Facets,
  draft: Draft,
): void {
  const isTable = asset.kind === "TABLE";
  const transformations = transformationTexts(input["transformations"]);
  if (source.kind !== "TABLE") {
    if (isTable) draft.edge("OUTPUT_TO", source, asset);
    else draft.edge("DERIVES_FROM", asset, source, transformations);
    return;
  }
  if (!isTable) {
    draft.edge("INPUT_OF", source, asset);
    return;
  }
  const field = nameText(input["field"]);
  draft.edge("DERIVES_FROM", derived, field === undefined ? source : columnName(source, field), transformations);
  if (through) {
    draft.edge("INPUT_OF", source, through);
    draft.edge("OUTPUT_TO", through, asset);
  } else if (textOf(source) !== textOf(asset)) draft.edge("DERIVES_FROM", asset, source);
}

/** A job without a name is the event's own. */
function entityOf(entity: Facets, { event, process, identities }: Reading): AssetName | undefined {
  const namespace = nameText(entity["namespace"]);
  const name = nameText(entity["name"]);
  if (entity["type"] !== "JOB") {
    return namespace === undefined || name === undefined ? undefined : identities.named(namespace, name);
  }
  const { job } = event;
  if ((namespace === undefined && name === undefined) || (namespace === job?.namespace && name === job?.name))
    return process;
  return namespace === undefined || name === undefined ? undefined : jobName(namespace, name);
}
