/** The claims of one event while it is read: what is told twice is kept once, and what is wrong is noted and passed over. */
import { storableText } from "../../kernel/data/storable.ts";
import type {
  AliasClaim,
  Attributes,
  Claims,
  EdgeClaim,
  EndingClaim,
  LineageEdgeKind,
  NodeClaim,
  OwnedEdgeKind,
  OwnedEdges,
  TagClaim,
} from "../claims.ts";
import type { AssetName, LinkName, TagEdgeKind } from "../names.ts";

/** Whoever has broken a thousand fields learns nothing from the last of them. */
const WARNINGS_MAX = 20;
/** A path goes through names that may be of any length. */
const WARNING_LENGTH_MAX = 1_000;

export interface Draft {
  node(name: AssetName, attributes: Attributes): void;
  edge(kind: LineageEdgeKind, from: AssetName, to: AssetName, transformations?: readonly string[]): void;
  tag(kind: TagEdgeKind, from: AssetName, to: AssetName): void;
  owns(owner: AssetName, kind: OwnedEdgeKind, to: readonly AssetName[]): void;
  /** A drop, or a rename if there is a new name. */
  ends(name: AssetName | LinkName, to?: AssetName): void;
  /** A rename that an engine reports, and that may have failed. */
  reportsRename(name: AssetName, to: AssetName): void;
  alias(name: AssetName, to: AssetName): void;
  ran(process: AssetName, runId: string): void;
  mention(name: AssetName): void;
  /** `path` and what is wrong there make a sentence: `/outputs/0/facets/schema` `has no list of fields`. */
  warn(path: string, wrong: string): void;
  claims(): Claims;
}

export function createDraft(): Draft {
  const nodes = new Map<string, { name: AssetName; attributes: Attributes }>();
  const edges = new Map<
    string,
    { kind: LineageEdgeKind; from: AssetName; to: AssetName; told: (readonly string[])[] }
  >();
  const aliases = new Map<string, AliasClaim>();
  const mentions = new Map<string, AssetName>();
  const tags: TagClaim[] = [];
  const owned: OwnedEdges[] = [];
  const endings: EndingClaim[] = [];
  const warnings: string[] = [];
  let execution: Claims["execution"];

  return {
    node(name, attributes) {
      const key = textOf(name);
      const known = nodes.get(key);
      if (known) known.attributes = { ...known.attributes, ...attributes };
      else nodes.set(key, { name, attributes });
    },
    edge(kind, from, to, transformations) {
      const key = `${kind}\0${textOf(from)}\0\0${textOf(to)}`;
      const known = edges.get(key);
      const edge = known ?? { kind, from, to, told: [] };
      if (!known) edges.set(key, edge);
      if (transformations?.length) edge.told.push(transformations);
    },
    tag: (kind, from, to) => void tags.push({ kind, from, to }),
    owns: (owner, kind, to) => void owned.push({ owner, kind, to }),
    ends: (name, to) => void endings.push({ name, ...(to && { to }) }),
    reportsRename: (name, to) => void endings.push({ name, to, reported: true }),
    alias(name, to) {
      const key = textOf(name);
      if (key !== textOf(to)) aliases.set(key, { name, to });
    },
    ran(process, runId) {
      execution = { process, runId };
    },
    mention: (name) => void mentions.set(textOf(name), name),
    warn(path, wrong) {
      if (warnings.length < WARNINGS_MAX) warnings.push(storableText(`${path} ${wrong}.`, WARNING_LENGTH_MAX));
    },
    claims: () => ({
      nodes: [...nodes.values()] satisfies NodeClaim[],
      edges: Array.from(
        edges.values(),
        ({ told, ...edge }): EdgeClaim => (told.length > 0 ? { ...edge, transformations: union(told) } : edge),
      ),
      tags,
      owned,
      endings,
      aliases: [...aliases.values()],
      ...(execution && { execution }),
      mentions: [...mentions.values()],
      warnings,
    }),
  };
}

/** For comparisons within one event. No part of a name holds a NUL. */
export const textOf = ({ kind, path }: AssetName): string => `${kind}\0${path.join("\0")}`;

function union(lists: readonly (readonly string[])[]): readonly string[] {
  const [first = [], ...more] = lists;
  return more.length > 0 ? [...new Set(lists.flat())].sort() : first;
}
