/** A graph of nodes and edges with their states. It is loaded when a page shows one: its libraries are larger than the console. */
import { type ComponentType, lazy, Suspense } from "react";
import { useWords } from "../../words/words.ts";
import styles from "./Graph.module.css";
import type { GraphEdge, GraphNode, Side } from "./model.ts";
import { graphWords } from "./words.ts";

export interface GraphProps<Node extends GraphNode = GraphNode> {
  /** What the graph shows, for screen readers. */
  label: string;
  nodes: readonly Node[];
  edges: readonly GraphEdge[];
  selected?: string | undefined;
  /** The node in the middle until one is selected or opened; the graph of a table's columns has no node for the table. */
  start?: string | undefined;
  onOpen?: ((id: string) => void) | undefined;
  /** How many steps around the selected node are drawn of a graph that is too large. Without `onDepth`, the graph keeps it itself. */
  depth?: string | undefined;
  onDepth?: ((depth: string) => void) | undefined;
  /** What a node shows below its title, instead of the subtitle; it should be the same component at each render. */
  Content?: ComponentType<{ node: Node }> | undefined;
  /** Asks for neighbours that are not in the graph. */
  onMore?: ((id: string, side: Side) => void) | undefined;
}

const GraphView = lazy(() => import("./GraphView.tsx"));

export function Graph<Node extends GraphNode>(props: GraphProps<Node>) {
  const text = useWords(graphWords);
  return (
    <div className={styles.graph}>
      <Suspense fallback={<p className={styles.laying}>{text.laying}</p>}>
        <GraphView {...(props as unknown as GraphProps)} />
      </Suspense>
    </div>
  );
}
