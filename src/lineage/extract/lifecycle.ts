/** The lifecycleStateChange facet: drops and renames. Other changes do not concern names. */
import { isRecord } from "../../kernel/json/is-record.ts";
import type { Facets, ParsedEvent } from "../ingest/event.ts";
import { facet, nameText } from "./facets.ts";

export type TableEnding = { kind: "DROP" } | { kind: "RENAME"; namespace: string; name: string };

/** For a rename: the name that the table had before. */
export function endedBy(facets: Facets): TableEnding | undefined {
  const change = facet(facets, "lifecycleStateChange");
  if (change?.["lifecycleStateChange"] === "DROP") return { kind: "DROP" };
  if (change?.["lifecycleStateChange"] !== "RENAME") return undefined;
  const previous = change["previousIdentifier"];
  const namespace = isRecord(previous) ? nameText(previous["namespace"]) : undefined;
  const name = isRecord(previous) ? nameText(previous["name"]) : undefined;
  return namespace === undefined || name === undefined ? undefined : { kind: "RENAME", namespace, name };
}

/** An event without a type is not of a run: it describes the present state. */
export function hasHappened({ eventType }: ParsedEvent): boolean {
  return eventType === null || eventType === "COMPLETE";
}
