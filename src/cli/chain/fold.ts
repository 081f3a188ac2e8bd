/**
 * Chooses the nodes of a run that fit a window, and draws their branches. Failed and running nodes are shown before ended ones;
 * a node with a hidden parent is drawn below its nearest visible ancestor.
 */
import type { NodeStatus, RunNode } from "./api.ts";
import { type Branch, treeOf } from "./tree.ts";

export interface ShownBranch<Node extends RunNode> {
  node: Node;
  otherParents: readonly string[];
  /** `│  ├─ `, each character one cell wide. */
  branches: string;
}

/** In the order in which nodes are shown. */
const PRIORITY: readonly (readonly NodeStatus[])[] = [
  ["FAILED"],
  ["RUNNING", "RETRYING"],
  ["STOPPED"],
  ["PENDING"],
  ["SKIPPED", "SUCCESS"],
];
const LEVEL_WIDTH = 3;
/** Also without a limit on the width: deeper branches are not readable. */
const LEVELS_MAX = 40;

export function foldTree<Node extends RunNode>(
  nodes: readonly Node[],
  { room, branchesWidth }: { room: number; branchesWidth: number },
): { shown: ShownBranch<Node>[]; hidden: Node[] } {
  const tree = treeOf(nodes);
  const chosen = tree.length <= room ? new Set(tree) : highestPriority(tree, room - 1); // One line counts the hidden ones.
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

function highestPriority<Node extends RunNode>(tree: readonly Branch<Node>[], room: number): Set<Branch<Node>> {
  const chosen = new Set<Branch<Node>>();
  for (const statuses of PRIORITY) {
    for (const branch of tree) {
      if (chosen.size >= room) return chosen;
      if (statuses.includes(branch.node.status)) chosen.add(branch);
    }
  }
  return chosen;
}
