/** `millrace lineage graph` and `columns`: where data comes from and where it goes, as trees. */
import { talkingCommand } from "../common/client-command.ts";
import type { Command, Flag, Given } from "../common/command.ts";
import { sections } from "../common/help.ts";
import { paint, printable } from "../common/output.ts";
import { type Asset, type CutReason, TENANT_FLAG, tenantOf } from "./api.ts";
import { drawTree, type Step, type Steps, type TreeLine } from "./tree.ts";

interface Edge {
  from: string;
  to: string;
  kind: string;
  /** The column by which a metric depends on a table. */
  via?: string;
  transformations?: Transformation[];
}

interface Transformation {
  type: string;
  subtype?: string;
  description?: string;
  masking?: boolean;
}

interface Graph {
  start: string;
  partial: boolean;
  reason: CutReason | null;
  depthReached: number;
  nodes: (Asset & { isMasked?: boolean })[];
  edges: Edge[];
}

const DEPTH = 3;
const NODES_MAX = 500;

const GRAPH_FLAGS: readonly Flag[] = [
  { usage: "--up", description: "Only where it comes from." },
  { usage: "--down", description: "Only where it goes." },
  { usage: "--depth <number>", description: `How many steps, up to 20 (default ${DEPTH}).` },
  { usage: "--max-nodes <number>", description: `Stop at so many, up to 2,000 (default ${NODES_MAX}).` },
  TENANT_FLAG,
];

const SIGNS = {
  repeat: ["…", "is drawn elsewhere with what lies behind it"],
  circle: ["↻", "leads round in a circle"],
} as const;

const SIGNS_HELP = `What is reached on several ways is drawn on the shortest, and marked with ${SIGNS.repeat[0]} on the others, or
with ${SIGNS.circle[0]} where they lead round in a circle.`;

const graph = graphCommand("graph", {
  summary: "Show where the data of a table comes from and where it goes",
  details: `Over the statements and jobs that read and write tables, and on to metrics. A step of --depth is one from table
to table. ${SIGNS_HELP}`,
  args: "ASSET",
  examples: ["millrace lineage graph lake.shop.daily --up", "millrace lineage graph lake.shop.orders --down --depth 8"],
});

const columns = graphCommand("columns/graph", {
  summary: "Show where the values of a column come from and where they go",
  details: `With what becomes of them on the way, such as an aggregation; \`indirect\` are columns that only decide which rows
there are, or their order. ${SIGNS_HELP}`,
  args: "ASSET.COLUMN",
  examples: ["millrace lineage columns lake.shop.daily.revenue --up"],
});

function graphCommand(path: string, words: Pick<Command, "summary" | "details" | "args" | "examples">): Command {
  return talkingCommand<Graph>({
    ...words,
    flags: GRAPH_FLAGS,
    talk: async (client, given) =>
      client.call<Graph>({
        method: "GET",
        path: `api/v1/lineage/${path}`,
        query: {
          tenant: await tenantOf(client, given),
          node: given.text(words.args),
          direction: directionOf(given),
          depth: given.maybeNumber("--depth") ?? DEPTH,
          maxNodes: given.maybeNumber("--max-nodes") ?? NODES_MAX,
        },
      }),
    show: showGraph,
  });
}

function directionOf(given: Given): "up" | "down" | "both" {
  if (given.isOn("--up") === given.isOn("--down")) return "both";
  return given.isOn("--up") ? "up" : "down";
}

function showGraph(found: Graph, given: Given): string {
  const direction = directionOf(given);
  const up = direction === "down" ? [] : treeOf(found, "up");
  const down = direction === "up" ? [] : treeOf(found, "down");
  const drawn = [...up, ...down];
  return sections([
    ["Comes from", drawnOf(found, up)],
    ["Goes to", drawnOf(found, down)],
    ["", legendOf(drawn)],
    ["", limitsInWords(found, given.maybeNumber("--depth") ?? DEPTH)],
  ]);
}

function treeOf({ start, nodes, edges }: Graph, direction: "up" | "down"): TreeLine[] {
  const names = new Map(nodes.map(({ id, fullName }) => [id, fullName]));
  const steps = new Map<string, Step[]>();
  for (const edge of edges) {
    const [at, to] = direction === "up" ? [edge.to, edge.from] : [edge.from, edge.to];
    const known = steps.get(at) ?? [];
    steps.set(at, known);
    known.push({ to, note: noteOf(edge) });
  }
  const nameOf = ({ to }: Step) => names.get(to) ?? "";
  for (const from of steps.values()) from.sort((a, b) => nameOf(a).localeCompare(nameOf(b), "en"));
  return drawTree(start, steps satisfies Steps);
}

function drawnOf({ nodes, partial }: Graph, lines: readonly TreeLine[]): string {
  const assets = new Map(nodes.map((node) => [node.id, node]));
  if (lines.length === 1) return partial ? "  Nothing was found before the limit." : "  Nothing is known.";
  return lines
    .map(({ id, branches, notes, sign }) => {
      const asset = assets.get(id);
      const remarks = [...notes, asset?.isMasked && branches !== "" ? "masked" : ""].filter((remark) => remark !== "");
      const parts = [
        asset === undefined ? id : labelOf(asset),
        sign === "" ? "" : SIGNS[sign][0],
        remarks.length === 0 ? "" : paint("dim", `[${printable(remarks.join(", "))}]`),
      ];
      return `  ${paint("dim", branches)}${parts.filter((part) => part !== "").join(" ")}`;
    })
    .join("\n");
}

/** Statements of one job share its name; their ids tell them apart, and `millrace lineage show` takes them. */
function labelOf({ id, kind, fullName }: Asset): string {
  const name = printable(fullName);
  if (kind === "SQL" || kind === "JOB") return `${name} ${paint("dim", `(${kind} ${id})`)}`;
  return kind === "METRIC" ? `${name} ${paint("dim", "(METRIC)")}` : name;
}

function noteOf({ kind, via, transformations = [] }: Edge): string {
  if (via !== undefined) return `by ${via}`;
  if (kind === "MEASURES" || kind === "FILTERS_BY") return wordsOf(kind);
  return transformations.map(transformationInWords).join(", ");
}

function transformationInWords({ type, subtype, description, masking }: Transformation): string {
  const what = type === "INDIRECT" ? `indirect ${wordsOf(subtype ?? "")}`.trim() : wordsOf(subtype ?? type);
  const details = [description ?? "", masking ? "masking" : ""].filter((detail) => detail !== "");
  return details.length === 0 ? what : `${what} (${details.join(", ")})`;
}

const wordsOf = (code: string) => code.toLowerCase().replaceAll("_", " ");

function legendOf(lines: readonly TreeLine[]): string {
  const used = (["repeat", "circle"] as const).filter((sign) => lines.some((line) => line.sign === sign));
  return used.map((sign) => SIGNS[sign].join(" ")).join("   ");
}

const CUT = {
  NODES: "there are more nodes than it may have. See more with --max-nodes, or less of it with --up or --down.",
  EDGES: "there are too many ways between its nodes. See less of it with --up, --down or a smaller --depth.",
  TIME: "it takes too long. See less of it with --up, --down or a smaller --depth.",
} as const satisfies Record<CutReason, string>;

function limitsInWords({ reason, depthReached }: Graph, depth: number): string {
  if (reason !== null) return paint("yellow", `This is only a part of the graph: ${CUT[reason]}`);
  return depthReached < depth
    ? ""
    : `More may lie behind ${depth === 1 ? "1 step" : `${depth} steps`}; see it with --depth.`;
}

export const graphs = { graph, columns };
