/** The graph as it is drawn: what the plan has chosen, where the layout has put it. */
import type { Edge, Node } from "@xyflow/react";
import { Position } from "@xyflow/react";
import { useEffect, useState } from "react";
import { toastError } from "../actions/toasts.tsx";
import { labelIdOf } from "./GraphCard.tsx";
import { edgeKey, type Layout } from "./layers.ts";
import { layOut } from "./layout.ts";
import { type GraphNode, type Links, linksOf, NODE_HEIGHT, NODE_WIDTH } from "./model.ts";
import type { Plan } from "./plan.ts";

export interface Drawn {
  plan: Plan;
  layout: Layout;
  links: Links;
}

const HANDLE_PX = 1;
const NO_DATA = {};

/** The earlier graph stays until the new one has its positions. */
export function useDrawn(plan: Plan, heightOf: (id: string) => number): Drawn | undefined {
  const [drawn, setDrawn] = useState<Drawn>();
  useEffect(() => {
    const wanted = new AbortController();
    const ids = [...plan.groups.keys()];
    const graph = { nodes: ids.map((id) => ({ id, height: heightOf(id) })), edges: plan.edges };
    void layOut(graph, wanted.signal)
      .then((layout) => setDrawn({ plan, layout, links: linksOf(ids, plan.edges) }))
      .catch((error: unknown) => {
        if (!wanted.signal.aborted) toastError(error);
      });
    return () => wanted.abort();
  }, [plan, heightOf]);
  return drawn;
}

/** Sizes are known, so nothing is measured, and what a card shows is not part of it. */
export function flowNodes({ plan, layout }: Drawn, heightOf: (id: string) => number, roleText: string): Node[] {
  return [...plan.groups.keys()].map((id) => {
    const height = heightOf(id);
    const size = { width: NODE_WIDTH, height };
    const handle = { width: HANDLE_PX, height: HANDLE_PX, y: height / 2 };
    return {
      id,
      type: "card",
      position: layout.positions.get(id) ?? { x: 0, y: 0 },
      data: NO_DATA,
      ...size,
      measured: size,
      handles: [
        { type: "target", position: Position.Left, x: 0, ...handle },
        { type: "source", position: Position.Right, x: NODE_WIDTH, ...handle },
      ],
      domAttributes: { "aria-labelledby": labelIdOf(id), "aria-roledescription": roleText, tabIndex: -1 },
    };
  });
}

export function flowEdges({ plan, layout }: Drawn): Edge[] {
  return plan.edges.map((edge) => ({
    id: edgeKey(edge),
    source: edge.from,
    target: edge.to,
    type: "line",
    data: { points: layout.routes.get(edgeKey(edge)), isFaded: edge.isFaded },
  }));
}

export function heightIn(nodes: ReadonlyMap<string, GraphNode>): (id: string) => number {
  return (id) => nodes.get(id)?.height ?? NODE_HEIGHT;
}
