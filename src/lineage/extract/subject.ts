/** What an operation on metadata is about. */
import type { Dataset, ParsedEvent } from "../event.ts";
import { type AssetName, catalogName } from "../names.ts";
import type { Draft } from "./draft.ts";

/** The one dataset of an operation, and where in the event its facets are. */
export interface Subject {
  event: ParsedEvent;
  dataset: Dataset;
  path: string;
  metalake: string | undefined;
  /** Empty where the namespace names none. */
  catalog: string;
  /** The tables that the event tells of, each of which is added as it is claimed. */
  tables: Map<Dataset, AssetName>;
  draft: Draft;
}

/** Namespaces are the only place where the metalake of a catalog is told; events of catalogs do not have it. */
export function claimMetalake({ metalake, catalog, draft }: Subject): void {
  if (metalake !== undefined) draft.node(catalogName("gravitino", catalog), { metalake });
}
