/**
 * A digest of the parts of an event that claims are made of. A run tells the same of its tables when it starts, while it runs
 * and when it is done, and the next day again: events with the same digest say the same, whoever ran and whenever. Of the
 * statement it takes what it is known by, which the literals in it are not: an event of each day differs from the one before
 * in its date alone. So claims of one digest are the same but for the run and for the `content` of the statement, and the
 * graph keeps the content that came first.
 */
import type { Dataset, Facets, ParsedEvent } from "../event.ts";
import { hashUuid } from "../hash-uuid.ts";
import { operationOf } from "./gravitino.ts";
import { endedBy, hasHappened } from "./lifecycle.ts";
import { engineOf, statementOf } from "./process.ts";
import type { Source } from "./source.ts";

const JOB_FACETS = ["documentation", "lineage"];
const LINEAGE_FACETS = [
  "schema",
  "columnLineage",
  "symlinks",
  "documentation",
  "ownership",
  "datasetType",
  "tags",
  "catalog",
  "lineage",
];
const OPERATION_FACETS = ["schema", "documentation", "gravitino", "gravitinoTag"];

/** A uuid. It runs for every event: one text, one hash. */
export function digestOf(event: ParsedEvent, source: Source): string {
  const { job, runId, producer, inputs, outputs } = event;
  const isOperation = operationOf(event, source) !== undefined;
  const happened = hasHappened(event);
  const statement = job ? statementOf(job) : undefined;
  const names = isOperation ? OPERATION_FACETS : LINEAGE_FACETS;
  const told = (dataset: Dataset) => [
    dataset.namespace,
    dataset.name,
    picked(dataset.facets, names),
    isOperation ? undefined : endingTold(dataset.facets, happened),
  ];
  return hashUuid(
    JSON.stringify([
      isOperation && [happened],
      runId !== null,
      producer,
      job && [
        job.namespace,
        job.name,
        statement && [statement.hash, statement.dialect],
        picked(job.facets, JOB_FACETS),
        engineOf(event, job),
      ],
      inputs.map(told),
      outputs.map(told),
    ]),
  );
}

/** Of a drop that has not happened nothing is claimed; of such a rename, that its table is not there yet. */
function endingTold(facets: Facets, happened: boolean): unknown {
  const ending = endedBy(facets);
  if (happened) return ending;
  return ending?.kind === "RENAME" ? [ending] : undefined;
}

const picked = (facets: Facets, names: readonly string[]): unknown[] => names.map((name) => facets[name]);
