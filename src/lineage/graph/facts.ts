/**
 * The facts that an event states about the graph. extract/ reads them from an event, as a pure function; apply.ts applies
 * them, in whatever order events arrive. The two share this file only.
 */
import type { AssetName, LinkName, TagEdgeKind } from "./names.ts";

export type AttributeValue =
  | string
  | number
  | boolean
  | null
  | readonly AttributeValue[]
  | { readonly [name: string]: AttributeValue };
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** How far a source of a fact is to be believed: engines differ in what they call the type of a column (attributes.ts). */
export const RANK = { reader: 0, writer: 1, catalog: 2 } as const;
export type Rank = (typeof RANK)[keyof typeof RANK];

/** The asset exists, and has these attributes. Others keep their values; `null` removes one. */
export interface NodeFact {
  name: AssetName;
  attributes: Attributes;
  /** A reader's by default. */
  rank?: Rank;
  /** Single members of attributes that are objects; `null` removes one. */
  members?: readonly MemberFact[];
}
export interface MemberFact {
  attribute: string;
  member: string;
  value: AttributeValue;
}

export type LineageEdgeKind = "INPUT_OF" | "OUTPUT_TO" | "DERIVES_FROM";

/** A lineage edge stays until one of its ends is dropped. Both ends exist. */
export interface EdgeFact {
  kind: LineageEdgeKind;
  from: AssetName;
  to: AssetName;
  /** Of DERIVES_FROM: each as canonical JSON of `{type, subtype?, description?, masking?}`, sorted, without repeats. */
  transformations?: readonly string[];
}

/** An asset has a tag or value domain. */
export interface TagFact {
  kind: TagEdgeKind;
  from: AssetName;
  to: AssetName;
}

export type OwnedEdgeKind = "MEASURES" | "FILTERS_BY" | "DERIVED_FROM" | "COMPUTED_FROM";

/** Edges that belong to the asset they leave: the newest event that names a kind replaces all of that kind. */
export interface OwnedEdges {
  owner: AssetName;
  kind: OwnedEdgeKind;
  to: readonly AssetName[];
}

/** From the time of the event on, nothing has this name (until a fact names it again), or its asset has another one. */
export interface EndingFact {
  name: AssetName | LinkName;
  /** The new name, of the same kind; absent for a drop. Everything below moves with it. */
  to?: AssetName;
  /** Of a rename that an engine reports. It may have failed: it counts only if `name` existed and `to` did not. */
  reported?: true;
}

/** `name` is another name of the table `to`. */
export interface AliasFact {
  name: AssetName;
  to: AssetName;
}

export interface Facts {
  nodes: readonly NodeFact[];
  edges: readonly EdgeFact[];
  tags: readonly TagFact[];
  owned: readonly OwnedEdges[];
  endings: readonly EndingFact[];
  aliases: readonly AliasFact[];
  /** The statement or job that ran, counted once for each run. */
  execution?: { process: AssetName; runId: string };
  /**
   * Every table, metric or other asset that the event names (no columns, and no parents of what it names), under the
   * names that it uses, those in symlinks and in column lineage included.
   */
  mentions: readonly AssetName[];
  /** What is wrong with facets and was left out, each as one sentence with the path. */
  warnings: readonly string[];
}
