/** The drawn graph. Loaded by `Graph`, with the libraries that it needs. */
import "@xyflow/react/dist/base.css";
import {
  type Node as FlowNode,
  MiniMap,
  type MiniMapNodeProps,
  Panel,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import { Select } from "../controls/Select.tsx";
import type { State } from "../states/state.ts";
import { useFormats } from "../times/time.ts";
import { CardsProvider, cardsOf, createCards, useCard } from "./cards.ts";
import { type Drawn, flowEdges, flowNodes, heightIn, useDrawn } from "./drawn.ts";
import styles from "./Graph.module.css";
import type { GraphProps } from "./Graph.tsx";
import { CardPartsProvider, GraphCard } from "./GraphCard.tsx";
import { GraphEdgeLine } from "./GraphEdgeLine.tsx";
import { nextByKey } from "./keys.ts";
import type { GraphNode } from "./model.ts";
import { type Plan, planOf } from "./plan.ts";
import { useView } from "./view.ts";
import { graphWords } from "./words.ts";

const NODE_TYPES = { card: GraphCard };
const EDGE_TYPES = { line: GraphEdgeLine };
const MINIMAP_OVER = 50;
const DEPTHS = ["1", "2", "3", "5", "8"] as const;
const DEPTH_DEFAULT = "2";
const ZOOM_MIN = 0.05;
const ZOOM_MAX = 1.5;

export default function GraphView(props: GraphProps) {
  return (
    <ReactFlowProvider>
      <Inside {...props} />
    </ReactFlowProvider>
  );
}

function Inside({ nodes, edges, selected, start, onOpen, label, Content, onMore, ...props }: GraphProps) {
  const text = useWords(graphWords);
  const shared = useWords(common);
  const byId = useMemo(() => new Map(nodes.map((node) => [node.id, node])), [nodes]);
  const [ownDepth, setOwnDepth] = useState<string>(DEPTH_DEFAULT);
  const { depth: givenDepth, onDepth = setOwnDepth } = props;
  const depth = DEPTHS.find((one) => one === (props.onDepth ? givenDepth : ownDepth)) ?? DEPTH_DEFAULT;
  const { plan, heightOf, focus, unfold, foldAgain } = usePlan(nodes, edges, selected ?? start, Number(depth));
  const drawn = useDrawn(plan, heightOf);
  const [cards] = useState(createCards);
  useLayoutEffect(() => {
    if (drawn) cards.show(withHidden(cardsOf(byId, drawn.plan.groups), drawn.plan), selected);
  }, [cards, drawn, byId, selected]);
  const [active, setActive] = useState<string>();
  const reachable = active !== undefined && drawn?.plan.groups.has(active) ? active : (selected ?? first(drawn));
  const base = useMemo(() => (drawn ? flowNodes(drawn, heightOf, text.node) : []), [drawn, heightOf, text.node]);
  const shown = useMemo(
    () => base.map((node) => (node.id === reachable ? asReachable(node) : node)),
    [base, reachable],
  );
  const lines = useMemo(() => (drawn ? flowEdges(drawn) : []), [drawn]);
  useView(drawn, selected ?? (plan.kind === "focused" ? focus : active) ?? start);
  const frame = useRef<HTMLDivElement>(null);

  function open(id: string): void {
    setActive(id);
    const members = drawn?.plan.groups.get(id) ?? [];
    if (members.length > 1) unfold(members);
    else onOpen?.(id);
  }
  function onKey(event: KeyboardEvent): void {
    const id = (event.target as Element).closest<HTMLElement>(".react-flow__node")?.dataset["id"];
    if (id === undefined || !drawn || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") open(id);
    else {
      const next = nextByKey(event.key, id, drawn.links, drawn.layout);
      if (next === undefined) return;
      setActive(next);
      frame.current?.querySelector<HTMLElement>(`[data-id="${CSS.escape(next)}"]`)?.focus();
    }
    event.preventDefault();
  }
  return (
    <CardsProvider value={cards}>
      <CardPartsProvider value={useMemo(() => ({ Content, onMore }), [Content, onMore])}>
        <PlanNote
          plan={plan}
          all={nodes.length}
          focus={byId.get(focus ?? "")}
          depth={depth}
          onDepth={onDepth}
          onFold={foldAgain}
        />
        <section
          ref={frame}
          className={styles.frame}
          aria-label={label}
          aria-busy={drawn?.plan !== plan}
          onKeyDownCapture={onKey}
        >
          <ReactFlow
            nodes={shown}
            edges={lines}
            nodeTypes={NODE_TYPES}
            edgeTypes={EDGE_TYPES}
            onNodeClick={(_event, { id }) => open(id)}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable
            edgesFocusable={false}
            elementsSelectable={false}
            // The wheel scrolls the page; with Ctrl it zooms.
            zoomOnScroll={false}
            preventScrolling={false}
            zoomActivationKeyCode={["Control", "Meta"]}
            minZoom={ZOOM_MIN}
            maxZoom={ZOOM_MAX}
            deleteKeyCode={null}
            proOptions={{ hideAttribution: true }}
            ariaLabelConfig={{
              "node.a11yDescription.default": text.keys,
              "node.a11yDescription.keyboardDisabled": text.keys,
              "minimap.ariaLabel": text.map,
            }}
          >
            <Tools />
            {shown.length > MINIMAP_OVER && (
              <MiniMap pannable zoomable nodeComponent={MapNode} className={styles.map ?? ""} ariaLabel={text.map} />
            )}
          </ReactFlow>
          {!drawn && (
            <p className={styles.laying} role="status">
              {nodes.length === 0 ? shared.nothingHere : text.laying}
            </p>
          )}
        </section>
      </CardPartsProvider>
    </CardsProvider>
  );
}

/** What is drawn follows the structure and the person's wishes, not the states: nothing moves because a node has ended. */
function usePlan(nodes: GraphProps["nodes"], edges: GraphProps["edges"], selected: string | undefined, depth: number) {
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const key = useMemo(
    () => JSON.stringify([nodes.map(({ id, height }) => [id, height]), edges.map(({ from, to }) => [from, to])]),
    [nodes, edges],
  );
  const [structure, setStructure] = useState({ key, nodes, edges });
  if (structure.key !== key) setStructure({ key, nodes, edges });
  const [middle, setMiddle] = useState(selected ?? mostUrgent(nodes)?.id);
  useEffect(() => {
    if (selected !== undefined) setMiddle(selected);
  }, [selected]);
  const plan = useMemo(
    () => planOf(structure.nodes, structure.edges, { focus: middle, depth, unfolded }),
    [structure, depth, unfolded, middle],
  );
  const heightOf = useMemo(() => heightIn(new Map(structure.nodes.map((node) => [node.id, node]))), [structure]);
  return {
    plan,
    heightOf,
    focus: middle,
    unfold(ids: readonly string[]) {
      setUnfolded(new Set([...unfolded, ...ids]));
      // If that is too much to be drawn, its surroundings are.
      setMiddle(ids[0]);
    },
    foldAgain() {
      setUnfolded(new Set());
      setStructure({ key, nodes, edges });
    },
  };
}

function mostUrgent(nodes: readonly GraphNode[]): GraphNode | undefined {
  const byState = (wanted: State) => nodes.find(({ state }) => state === wanted);
  return byState("failed") ?? byState("running") ?? nodes[0];
}

interface PlanNoteProps {
  plan: Plan;
  all: number;
  focus: GraphNode | undefined;
  depth: (typeof DEPTHS)[number];
  onDepth(depth: (typeof DEPTHS)[number]): void;
  onFold(): void;
}

function PlanNote({ plan, all, focus, depth, onDepth, onFold }: PlanNoteProps) {
  const text = useWords(graphWords);
  const { number } = useFormats();
  if (plan.kind === "all") return null;
  const [drawn, whole] = [number(plan.groups.size), number(all)];
  return (
    <div className={styles.note}>
      {plan.kind === "folded" ? (
        <span>{text.folded(drawn, whole)}</span>
      ) : (
        <>
          <span>
            {text.focused(drawn, whole)} <code>{focus?.title}</code>
          </span>
          <Select label={text.depth} value={depth} options={DEPTHS.map((one) => [one, one])} onChange={onDepth} />
        </>
      )}
      <Button kind="quiet" onPress={onFold}>
        {text.foldAgain}
      </Button>
    </div>
  );
}

function Tools() {
  const text = useWords(graphWords);
  const flow = useReactFlow();
  return (
    <Panel position="top-right" className={styles.tools ?? ""}>
      <Button icon="plus" label={text.zoomIn} onPress={() => void flow.zoomIn()} />
      <Button icon="minus" label={text.zoomOut} onPress={() => void flow.zoomOut()} />
      <Button icon="expand" label={text.fit} onPress={() => void flow.fitView({ maxZoom: 1, padding: 0.05 })} />
    </Panel>
  );
}

function MapNode({ id, x, y, width, height }: MiniMapNodeProps) {
  const card = useCard(id);
  const state = card?.kind === "group" ? card.group.counts[0]?.[0] : card?.node.state;
  return <rect className={styles.mapNode} data-state={state} x={x} y={y} width={width} height={height} rx={8} />;
}

function asReachable(node: FlowNode): FlowNode {
  return { ...node, domAttributes: { ...node.domAttributes, tabIndex: 0 } };
}

function first(drawn: Drawn | undefined): string | undefined {
  return drawn?.plan.groups.keys().next().value;
}

function withHidden(cards: ReturnType<typeof cardsOf>, { hidden }: Plan): ReturnType<typeof cardsOf> {
  for (const [id, { before, after }] of hidden) {
    const card = cards.get(id);
    if (card?.kind !== "node" || before + after === 0) continue;
    cards.set(id, { kind: "node", node: { ...card.node, hiddenBefore: before, hiddenAfter: after } });
  }
  return cards;
}
