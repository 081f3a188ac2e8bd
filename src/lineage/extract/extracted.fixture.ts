/** Facts as short texts, so that a test can show a whole event's worth of them. */

import type { Json } from "../events.fixture.ts";
import type { Attributes, Facts, MemberFact } from "../graph/facts.ts";
import type { Name } from "../graph/names.ts";
import { parseEvent } from "../ingest/event.ts";
import { factsOf, type Source } from "./index.ts";

interface ShownFacts {
  nodes: Record<string, Attributes>;
  /** Single members of attributes. */
  members: Record<string, readonly MemberFact[]>;
  edges: string[];
  transformations: Record<string, readonly string[]>;
  tags: string[];
  owned: Record<string, string[]>;
  endings: string[];
  aliases: string[];
  mentions: string[];
  execution: string | undefined;
  warnings: readonly string[];
}

export function extractedFrom(event: Json, source: Source = "COMPUTE_ENGINE"): ShownFacts {
  return shown(factsOf(parseEvent(event), source));
}

export const extractedFromGravitino = (event: Json): ShownFacts => extractedFrom(event, "GRAVITINO");

/** `TABLE gravitino|hive|dw|orders`. */
const text = ({ kind, path }: Name): string => `${kind} ${path.join("|")}`;

function shown(facts: Facts): ShownFacts {
  const { nodes, edges, tags, owned, endings, aliases, mentions, execution, warnings } = facts;
  const edgeText = ({ kind, from, to }: { kind: string; from: Name; to: Name }) => `${text(from)} ${kind} ${text(to)}`;
  return {
    nodes: Object.fromEntries(nodes.map(({ name, attributes }) => [text(name), attributes])),
    members: Object.fromEntries(nodes.flatMap(({ name, members }) => (members ? [[text(name), members]] : []))),
    edges: edges.map(edgeText),
    transformations: Object.fromEntries(edges.map((edge) => [edgeText(edge), edge.transformations ?? []])),
    tags: tags.map(edgeText),
    owned: Object.fromEntries(owned.map(({ owner, kind, to }) => [`${text(owner)} ${kind}`, to.map(text)])),
    endings: endings.map(({ name, to }) => (to ? `${text(name)} -> ${text(to)}` : text(name))),
    aliases: aliases.map(({ name, to }) => `${text(name)} -> ${text(to)}`),
    mentions: mentions.map(text),
    execution: execution && `${text(execution.process)} in ${execution.runId}`,
    warnings,
  };
}
