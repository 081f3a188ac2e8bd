/**
 * What an event says of the world, in the graph's own words. Reading an event into claims is pure (extract/), and applying
 * claims does not depend on the order in which events arrive (apply.ts): the two know of each other by this file only.
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

/** The asset exists, and has these attributes. One that is not named keeps what it has; `null` takes a value away. */
export interface NodeClaim {
  name: AssetName;
  attributes: Attributes;
}

export type LineageEdgeKind = "INPUT_OF" | "OUTPUT_TO" | "DERIVES_FROM";

/** A lineage edge once told stays until one of its ends is dropped. Both ends come to exist by it. */
export interface EdgeClaim {
  kind: LineageEdgeKind;
  from: AssetName;
  to: AssetName;
  /** Of DERIVES_FROM: each as canonical JSON of `{type, subtype?, description?, masking?}`, sorted, without repeats. */
  transformations?: readonly string[];
}

/** An asset bears a tag or value domain. */
export interface TagClaim {
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

/** From the time of the event on, the name means nothing any more (until it is claimed again), or goes by another one. */
export interface EndingClaim {
  name: AssetName | LinkName;
  /** The new name, of the same kind; absent for a drop. Everything below it goes along. */
  to?: AssetName;
  /** Of a rename that an engine reports. It may have failed: it counts only if `name` existed and `to` did not. */
  reported?: true;
}

/** `name` is another name of the table `to`. */
export interface AliasClaim {
  name: AssetName;
  to: AssetName;
}

export interface Claims {
  nodes: readonly NodeClaim[];
  edges: readonly EdgeClaim[];
  tags: readonly TagClaim[];
  owned: readonly OwnedEdges[];
  endings: readonly EndingClaim[];
  aliases: readonly AliasClaim[];
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
