/** Collects the facts of one event: duplicates are merged, and faults become warnings. */
import { storableText } from "../../kernel/data/storable.ts";
import {
  type AliasFact,
  type Attributes,
  type EdgeFact,
  type EndingFact,
  type Facts,
  type LineageEdgeKind,
  type NodeFact,
  type OwnedEdgeKind,
  type OwnedEdges,
  RANK,
  type TagFact,
} from "../graph/facts.ts";
import type { AssetName, LinkName, TagEdgeKind } from "../graph/names.ts";

/** The first warnings are enough to find a systematic fault. */
const WARNINGS_MAX = 20;
/** A path goes through names that may be of any length. */
const WARNING_LENGTH_MAX = 1_000;

export interface Draft {
  /** Of two values for one attribute, that of the higher rank holds; of one rank, the later. */
  node(name: AssetName, attributes: Attributes, more?: Pick<NodeFact, "rank" | "members">): void;
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
  facts(): Facts;
}

export function createDraft(): Draft {
  const nodes = new Map<string, NodeFact>();
  const edges = new Map<
    string,
    { kind: LineageEdgeKind; from: AssetName; to: AssetName; transformations: (readonly string[])[] }
  >();
  const aliases = new Map<string, AliasFact>();
  const mentions = new Map<string, AssetName>();
  const tags: TagFact[] = [];
  const owned: OwnedEdges[] = [];
  const endings: EndingFact[] = [];
  const warnings: string[] = [];
  let execution: Facts["execution"];

  return {
    node(name, attributes, more) {
      const key = textOf(name);
      const known = nodes.get(key);
      if (!known) {
        nodes.set(key, { name, attributes, ...more });
        return;
      }
      const isLesser = (more?.rank ?? RANK.reader) < (known.rank ?? RANK.reader);
      known.attributes = isLesser ? { ...attributes, ...known.attributes } : { ...known.attributes, ...attributes };
      if (!isLesser) Object.assign(known, more);
    },
    edge(kind, from, to, transformations) {
      const key = `${kind}\0${textOf(from)}\0\0${textOf(to)}`;
      const known = edges.get(key);
      const edge = known ?? { kind, from, to, transformations: [] };
      if (!known) edges.set(key, edge);
      if (transformations?.length) edge.transformations.push(transformations);
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
    facts: () => ({
      nodes: [...nodes.values()],
      edges: Array.from(
        edges.values(),
        ({ transformations, ...edge }): EdgeFact =>
          transformations.length > 0 ? { ...edge, transformations: union(transformations) } : edge,
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
