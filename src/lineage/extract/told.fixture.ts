/** Claims as short texts, so that a test can show a whole event's worth of them. */
import type { Attributes, Claims } from "../claims.ts";
import { parseEvent } from "../event.ts";
import type { Json } from "../events.fixture.ts";
import type { Name } from "../names.ts";
import { claimsOf, type Source } from "./index.ts";

interface Told {
  nodes: Record<string, Attributes>;
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

export function toldBy(event: Json, source: Source = "COMPUTE_ENGINE"): Told {
  return shown(claimsOf(parseEvent(event), source));
}

export const toldByGravitino = (event: Json): Told => toldBy(event, "GRAVITINO");

/** `TABLE gravitino|hive|dw|orders`. */
const text = ({ kind, path }: Name): string => `${kind} ${path.join("|")}`;

function shown(claims: Claims): Told {
  const { nodes, edges, tags, owned, endings, aliases, mentions, execution, warnings } = claims;
  const edgeText = ({ kind, from, to }: { kind: string; from: Name; to: Name }) => `${text(from)} ${kind} ${text(to)}`;
  return {
    nodes: Object.fromEntries(nodes.map(({ name, attributes }) => [text(name), attributes])),
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
