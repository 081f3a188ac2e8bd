/** What an event says of the graph. It depends on nothing but the event and who sent it, so an event can be read again. */
import type { Claims } from "../claims.ts";
import type { ParsedEvent } from "../event.ts";
import { claimLineage } from "./compute.ts";
import { createDraft } from "./draft.ts";
import { claimOperation, operationOf } from "./gravitino.ts";
import type { Source } from "./source.ts";

/** Operations on metadata (`gravitino.*`) count only if Gravitino sends them; from anyone else they are a job like any other. */
export function claimsOf(event: ParsedEvent, source: Source): Claims {
  const draft = createDraft();
  const operation = operationOf(event, source);
  if (operation === undefined) claimLineage(event, draft);
  else claimOperation(operation, event, draft);
  return draft.claims();
}
