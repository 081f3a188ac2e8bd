/** The asset of an operation on metadata. */

import { type AssetName, catalogName } from "../../graph/names.ts";
import type { Dataset, ParsedEvent } from "../../ingest/event.ts";
import type { Draft } from "../draft.ts";

/** The one dataset of an operation, and where in the event its facets are. */
export interface Subject {
  event: ParsedEvent;
  dataset: Dataset;
  path: string;
  metalake: string | undefined;
  /** Empty where the namespace names none. */
  catalog: string;
  /** The tables of the event, each added when its facts are. */
  tables: Map<Dataset, AssetName>;
  draft: Draft;
}

/** Only namespaces name the metalake of a catalog; events of catalogs do not have it. */
export function addMetalake({ metalake, catalog, draft }: Subject): void {
  if (metalake !== undefined) draft.node(catalogName("gravitino", catalog), { metalake });
}
