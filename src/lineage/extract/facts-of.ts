/** Extracts the facts of an event. They depend only on the event and its source, so an event can be read again. */
import type { Facts } from "../graph/facts.ts";
import type { ParsedEvent } from "../ingest/event.ts";
import { addLineage } from "./compute.ts";
import { createDraft } from "./draft.ts";
import { addOperation, operationOf } from "./gravitino/gravitino.ts";
import type { Source } from "./source.ts";

/** Operations on metadata (`gravitino.*`) count only if Gravitino sends them; from anyone else they are a job like any other. */
export function factsOf(event: ParsedEvent, source: Source): Facts {
  const draft = createDraft();
  const operation = operationOf(event, source);
  if (operation === undefined) addLineage(event, draft);
  else addOperation(operation, event, draft);
  return draft.facts();
}
