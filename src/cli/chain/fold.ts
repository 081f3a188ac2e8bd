/**
 * Chooses which nodes of a run a window has room for, and draws the branches before them. What fails and what goes on is
 * never hidden behind what is over; a node whose parent is hidden hangs on the nearest one that is not.
 */
import type { NodeStatus, RunNode } from "./api.ts";
import { type Branch, treeOf } from "./tree.ts";

export interface ShownBranch<Node extends RunNode> {
  node: Node;
  otherParents: readonly string[];
  /** `│  ├─ `: the lines that lead to it. Each sign takes one cell. */
  branches: string;
}

/** The first are shown first. */
const URGENCY: readonly (readonly NodeStatus[])[] = [
  ["FAILED"],
  ["RUNNING", "RETRYING"],
  ["STOPPED"],
  ["PENDING"],
  ["SKIPPED", "SUCCESS"],
];
const LEVEL_WIDTH = 3;
/** Also where a line may be as long as it likes: deeper than this nobody follows the lines any more. */
const LEVELS_MAX = 40;

export function foldTree<Node extends RunNode>(
  nodes: readonly Node[],
  { room, branchesWidth }: { room: number; branchesWidth: number },
): { shown: ShownBranch<Node>[]; hidden: Node[] } {
  const tree = treeOf(nodes);
  const chosen = tree.length <= room ? new Set(tree) : mostUrgent(tree, room - 1); // One line tells what is hidden.
  const levels = Math.min(LEVELS_MAX, Math.max(1, Math.floor(branchesWidth / LEVEL_WIDTH)));
  const anchors = new Map<Branch<Node>, Branch<Node> | undefined>();
  const lastOn = new Map<Branch<Node> | undefined, Branch<Node>>();
  for (const branch of tree) {
    const { parent } = branch;
    const anchor = parent === undefined || chosen.has(parent) ? parent : anchors.get(parent);
    anchors.set(branch, anchor);
    if (chosen.has(branch)) lastOn.set(anchor, branch);
  }

  function branchesOf(branch: Branch<Node>): string {
    let drawn = "";
    let level = 0;
    for (let at = branch, anchor = anchors.get(at); anchor !== undefined; at = anchor, anchor = anchors.get(at)) {
      if (level === levels) return `…${drawn.slice(1)}`;
      const isLast = lastOn.get(anchor) === at;
      if (level === 0) drawn = isLast ? "└─ " : "├─ ";
      else drawn = (isLast ? "   " : "│  ") + drawn;
      level += 1;
    }
    return drawn;
  }

  return {
    shown: tree
      .filter((branch) => chosen.has(branch))
      .map((branch) => ({
        node: branch.node,
        otherParents: branch.otherParents,
        branches: branchesOf(branch),
      })),
    hidden: tree.filter((branch) => !chosen.has(branch)).map(({ node }) => node),
  };
}

function mostUrgent<Node extends RunNode>(tree: readonly Branch<Node>[], room: number): Set<Branch<Node>> {
  const chosen = new Set<Branch<Node>>();
  for (const statuses of URGENCY) {
    for (const branch of tree) {
      if (chosen.size >= room) return chosen;
      if (statuses.includes(branch.node.status)) chosen.add(branch);
    }
  }
  return chosen;
}
