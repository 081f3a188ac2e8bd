/** A run as lines of text that fit a window: a header with its progress, then its nodes as a tree. Used by `show` and `watch`. */

import { listed } from "../../kernel/text/sentences.ts";
import { clip, displayWidth, printable, type Style } from "../common/output.ts";
import { bar, line, type Span } from "../common/spans.ts";
import type { NodeStatus, Run, RunNode, RunStatus } from "./api.ts";
import { foldTree, type ShownBranch } from "./fold.ts";
import { countByStatus, countsInWords, durationOf, hasEnded, inOneLine, nodeNote } from "./run-text.ts";

export interface FrameInput {
  run: Run;
  nodes: readonly RunNode[];
  /** Milliseconds since 1970. */
  now: number;
  /** The limit of each line. */
  width: number;
  /** The limit of lines, unless the window is too small. */
  height: number;
  colour: boolean;
}

const GLYPHS: Readonly<Record<NodeStatus, readonly [glyph: string, style: Style]>> = {
  PENDING: ["○", "dim"],
  RUNNING: ["●", "cyan"],
  SUCCESS: ["✓", "green"],
  FAILED: ["✗", "red"],
  RETRYING: ["↻", "yellow"],
  SKIPPED: ["⊘", "dim"],
  STOPPED: ["■", "magenta"],
};
/** The symbols of the states, for the help. */
export const LEGEND = Object.entries(GLYPHS)
  .map(([status, [glyph]]) => `${glyph} ${status.toLowerCase()}`)
  .join(", ");
const RUN_STYLES: Readonly<Record<RunStatus, Style>> = {
  PENDING: "dim",
  RUNNING: "cyan",
  SUCCESS: "green",
  FAILED: "red",
  STOPPING: "magenta",
  STOPPED: "magenta",
};

/** Drawn even if the window is too small. */
const ROWS_MIN = 2;
/** The limits of the branches and of the name, as shares of a line. */
const BRANCHES_SHARE = 0.3;
const NAME_SHARE = 0.6;
const DURATION_WIDTH = 7;
const OTHER_PARENTS_MAX = 3;

export function frame({ run, nodes, now, width, height, colour }: FrameInput): string[] {
  const head = [headline(run, now), progress(nodes, width)];
  const reason = inOneLine(run.reason);
  if (reason !== "") head.push([[reason, RUN_STYLES[run.status]]]);
  const { shown, hidden } = foldTree(nodes, {
    room: Math.max(ROWS_MIN, height - head.length),
    branchesWidth: Math.floor(width * BRANCHES_SHARE),
  });
  const statusOf = new Map(nodes.map(({ nodeId, status }) => [nodeId, status]));
  // The tree already shows that a node waits for its parents.
  const notes = shown.map(({ node }) =>
    node.status === "PENDING" && !node.dependsOn.every((id) => hasEnded(statusOf.get(id))) ? "" : nodeNote(node, now),
  );
  const rows = nodeRows(shown, notes, { now, nameWidthMax: Math.floor(width * NAME_SHARE) });
  if (hidden.length > 0) rows.push([[`… ${hidden.length} more: ${countsInWords(countByStatus(hidden))}`, "dim"]]);
  return [...head, ...rows].map((spans) => line(spans, width, colour));
}

function headline(run: Run, now: number): Span[] {
  const took = durationOf(run, now);
  return [
    [printable(run.jobName), "bold"],
    [`  ${run.status}`, RUN_STYLES[run.status]],
    [took === "" ? "" : `  ${took}`],
    [`  run ${printable(run.runId)}`, "dim"],
    [run.opTime === null ? "" : `  opTime ${printable(run.opTime)}`, "dim"],
  ];
}

function progress(nodes: readonly RunNode[], width: number): Span[] {
  const counts = countByStatus(nodes);
  const ended = nodes.filter(({ status }) => hasEnded(status)).length;
  return [
    ...bar(nodes.length === 0 ? 0 : ended / nodes.length, { width, isFailed: counts.has("FAILED") }),
    [`  ${ended}/${nodes.length}`],
    [`  ${countsInWords(counts)}`, "dim"],
  ];
}

/** One line for each node: its branches, state and name, then in columns its duration and a note. */
function nodeRows(
  shown: readonly ShownBranch<RunNode>[],
  notes: readonly string[],
  { now, nameWidthMax }: { now: number; nameWidthMax: number },
): Span[][] {
  const names = shown.map(({ node, branches }) => clip(printable(node.nodeId), nameWidthMax - branches.length));
  const widths = shown.map(({ branches }, index) => branches.length + displayWidth(names[index] ?? ""));
  const column = widths.reduce((widest, width) => Math.max(widest, width), 0);
  return shown.map(({ node, branches, otherParents }, index) => {
    const [glyph, style] = GLYPHS[node.status];
    const spans: Span[] = [[branches, "dim"], [`${glyph} `, style], [names[index] ?? ""]];
    const took = durationOf(node, now);
    const note = notes[index] ?? "";
    if (took === "" && note === "" && otherParents.length === 0) return spans;
    spans.push([" ".repeat(column - (widths[index] ?? 0))], [`  ${took.padStart(DURATION_WIDTH)}`, "dim"]);
    if (note !== "") spans.push([`  ${note}`, style]);
    if (otherParents.length > 0)
      spans.push([`  also after ${listed(otherParents.map(printable), OTHER_PARENTS_MAX)}`, "dim"]);
    return spans;
  });
}
