/**
 * A DAG as a tree for a terminal: each node once, below the first of its parents in topological order. Not recursive, so that
 * a line of 10,000 nodes does not exhaust the stack.
 */

interface DagNode {
  readonly nodeId: string;
  readonly dependsOn: readonly string[];
}

export interface Branch<Node extends DagNode> {
  readonly node: Node;
  /** The branch of its first parent. */
  readonly parent: Branch<Node> | undefined;
  /** The ids of the other nodes that it depends on. */
  readonly otherParents: readonly string[];
}

/** All nodes from top to bottom, every branch after its parent. */
export function treeOf<Node extends DagNode>(nodes: readonly Node[]): Branch<Node>[] {
  const sorted = topologically(nodes);
  const rankOf = new Map(sorted.map(({ nodeId }, rank) => [nodeId, rank]));
  const branches = new Map<string, Branch<Node>>();
  const children = new Map<Branch<Node> | undefined, Branch<Node>[]>();
  for (const [rank, node] of sorted.entries()) {
    let first = rank;
    for (const id of node.dependsOn) first = Math.min(first, rankOf.get(id) ?? rank);
    const firstId = first === rank ? undefined : sorted[first]?.nodeId;
    const parent = firstId === undefined ? undefined : branches.get(firstId);
    const branch = { node, parent, otherParents: node.dependsOn.filter((id) => id !== firstId) };
    branches.set(node.nodeId, branch);
    const siblings = children.get(parent);
    if (siblings) siblings.push(branch);
    else children.set(parent, [branch]);
  }

  const inOrder: Branch<Node>[] = [];
  const open = (children.get(undefined) ?? []).toReversed();
  for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
    inOrder.push(branch);
    open.push(...(children.get(branch) ?? []).toReversed());
  }
  return inOrder;
}

/** Every node after all its parents; otherwise in the given order. */
function topologically<Node extends DagNode>(nodes: readonly Node[]): Node[] {
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const unmet = new Map<string, number>();
  const children = new Map<string, Node[]>();
  for (const node of nodes) {
    const parents = new Set(node.dependsOn.filter((id) => byId.has(id)));
    unmet.set(node.nodeId, parents.size);
    for (const id of parents) {
      const siblings = children.get(id);
      if (siblings) siblings.push(node);
      else children.set(id, [node]);
    }
  }
  const sorted = nodes.filter(({ nodeId }) => unmet.get(nodeId) === 0);
  for (const { nodeId } of sorted) {
    for (const child of children.get(nodeId) ?? []) {
      const left = (unmet.get(child.nodeId) ?? 0) - 1;
      unmet.set(child.nodeId, left);
      if (left === 0) sorted.push(child);
    }
  }
  return sorted;
}
