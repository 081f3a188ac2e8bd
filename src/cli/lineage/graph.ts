/** `millrace lineage graph` and `columns`: upstream and downstream lineage as trees. */
import { counted } from "../../kernel/text/sentences.ts";
import { serverCommand } from "../common/client-command.ts";
import type { Command, Flag, Given } from "../common/command.ts";
import { sections } from "../common/help.ts";
import { paint, printable } from "../common/output.ts";
import { type Asset, type CutReason, TENANT_FLAG, tenantOf } from "./api.ts";
import { drawTree, type Step, type Steps, type TreeLine } from "./tree.ts";

interface Edge {
  from: string;
  to: string;
  kind: string;
  /** The column of a table that a metric depends on. */
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
  { usage: "--up", description: "Only upstream." },
  { usage: "--down", description: "Only downstream." },
  { usage: "--depth <number>", description: `How many steps, up to 20 (default ${DEPTH}).` },
  { usage: "--max-nodes <number>", description: `The limit of nodes, up to 2,000 (default ${NODES_MAX}).` },
  TENANT_FLAG,
];

const SYMBOLS = {
  repeat: ["…", "is drawn elsewhere with its children"],
  cycle: ["↻", "is part of a cycle"],
} as const;

const SYMBOLS_HELP = `A node with several paths is drawn on the shortest one, and marked with ${SYMBOLS.repeat[0]} on the others, or with
${SYMBOLS.cycle[0]} if it is part of a cycle.`;

const graph = graphCommand("graph", {
  summary: "Show where the data of a table comes from and where it goes",
  details: `Includes the statements and jobs that read and write tables, and metrics. A step of --depth leads from table to
table. ${SYMBOLS_HELP}`,
  args: "ASSET",
  examples: ["millrace lineage graph lake.shop.daily --up", "millrace lineage graph lake.shop.orders --down --depth 8"],
});

const columns = graphCommand("columns/graph", {
  summary: "Show where the values of a column come from and where they go",
  details: `Shows the transformations, such as an aggregation; \`indirect\` marks columns that only affect which rows there are,
or their order. ${SYMBOLS_HELP}`,
  args: "ASSET.COLUMN",
  examples: ["millrace lineage columns lake.shop.daily.revenue --up"],
});

function graphCommand(path: string, words: Pick<Command, "summary" | "details" | "args" | "examples">): Command {
  return serverCommand<Graph>({
    ...words,
    flags: GRAPH_FLAGS,
    execute: async (client, given) =>
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
  if (lines.length === 1) return partial ? "  Nothing was found within the limit." : "  Nothing is known.";
  return lines
    .map(({ id, branches, notes, sign }) => {
      const asset = assets.get(id);
      const remarks = [...notes, asset?.isMasked && branches !== "" ? "masked" : ""].filter((remark) => remark !== "");
      const parts = [
        asset === undefined ? id : labelOf(asset),
        sign === "" ? "" : SYMBOLS[sign][0],
        remarks.length === 0 ? "" : paint("dim", `[${printable(remarks.join(", "))}]`),
      ];
      return `  ${paint("dim", branches)}${parts.filter((part) => part !== "").join(" ")}`;
    })
    .join("\n");
}

/** Statements of one job have the same name, so the id is shown; `millrace lineage show` accepts it. */
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
  const used = (["repeat", "cycle"] as const).filter((sign) => lines.some((line) => line.sign === sign));
  return used.map((sign) => SYMBOLS[sign].join(" ")).join("   ");
}

const CUT = {
  NODES: "it has too many nodes. Raise --max-nodes, or use --up or --down.",
  EDGES: "it has too many edges. Use --up, --down or a smaller --depth.",
  TIME: "it takes too long. Use --up, --down or a smaller --depth.",
} as const satisfies Record<CutReason, string>;

function limitsInWords({ reason, depthReached }: Graph, depth: number): string {
  if (reason !== null) return paint("yellow", `This is only a part of the graph: ${CUT[reason]}`);
  return depthReached < depth ? "" : `There may be more beyond ${counted(depth, "step")}; raise --depth to see it.`;
}

export const graphs = { graph, columns };
