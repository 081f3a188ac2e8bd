/** The graph around an asset: tables or columns, up or down, as far as is asked for; one request for all that is drawn. */
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useLive } from "../../api/live.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Select } from "../../parts/controls/Select.tsx";
import { Drawer, Split } from "../../parts/dialogs/Drawer.tsx";
import { Graph } from "../../parts/graph/Graph.tsx";
import { Fields } from "../../parts/page/Fields.tsx";
import { Loaded } from "../../parts/page/Page.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { ASSETS, ASSETS_PACE, type Asset, type Direction, type GraphReply, paths } from "../api.ts";
import { KindMark } from "../KindMark.tsx";
import styles from "../lineage.module.css";
import { lineage } from "../words.ts";
import type { AssetViewProps } from "./AssetPage.tsx";
import { drawnGraph, FANOUT, hopOf, listOf, type Wish, withColumn, withHop } from "./drawn.ts";
import { Neighbours } from "./Neighbours.tsx";

const DEPTHS = ["1", "2", "3", "5", "10", "20"];
const DIRECTIONS = ["both", "up", "down"] as const satisfies readonly Direction[];
/** Of another list. */
const NO_FILTER = { up: undefined, down: undefined };
/** As many as are drawn without folding. */
const NODES_MAX = 500;

export function Explorer({ tenant, asset, search, set }: AssetViewProps) {
  const text = useWords(lineage);
  const { number } = useFormats();
  const isProcess = asset.kind === "SQL" || asset.kind === "JOB";
  // A column begins with its own lineage, everything else with that of tables.
  const level = isProcess ? "tables" : (search.level ?? (asset.kind === "COLUMN" ? "columns" : "tables"));
  const direction = DIRECTIONS.find((one) => one === search.direction) ?? "both";
  const depth = DEPTHS.find((one) => one === search.depth) ?? "1";
  const query = {
    tenant,
    node: asset.id,
    direction,
    depth,
    fanout: FANOUT,
    expand: search.expand,
    maxNodes: NODES_MAX,
  };
  const path = level === "columns" ? paths.columnGraph(query) : paths.graph(query);
  const result = useLive<GraphReply>(path, ASSETS, ASSETS_PACE);
  const list = hopOf(search.list);
  const reply = result.data;
  const opened = list ? undefined : reply?.nodes.find(({ id }) => id === search.node);
  const wish = useMemo(
    () => ({ direction, selected: opened?.id, columns: search.columns }),
    [direction, opened?.id, search.columns],
  );
  const listed = list && reply?.nodes.find(({ id }) => id === list.id);
  return (
    <>
      <div className={styles.bar}>
        {!isProcess && (
          <Select
            label={text.level}
            value={level}
            options={[
              ["tables", text.tables],
              ["columns", text.columns],
            ]}
            onChange={(next) =>
              set({ level: next, expand: undefined, columns: undefined, node: undefined, list: undefined })
            }
          />
        )}
        <Select
          label={text.direction}
          value={direction}
          options={DIRECTIONS.map((one) => [one, text[one]] as const)}
          onChange={(next) => set({ direction: next === "both" ? undefined : next })}
        />
        <Select
          label={text.depth}
          value={depth}
          options={DEPTHS.map((one) => [one, one])}
          onChange={(next) => set({ depth: next === "1" ? undefined : next })}
        />
        {(search.expand ?? search.columns) !== undefined && (
          <Button kind="quiet" onPress={() => set({ expand: undefined, columns: undefined })}>
            {text.foldAgain}
          </Button>
        )}
      </div>
      <Split
        drawer={
          list && listed ? (
            <Drawer
              key={search.list}
              title={(list.direction === "up" ? text.upstreamOf : text.downstreamOf)(listed.name)}
              onClose={() => set({ list: undefined, ...NO_FILTER })}
            >
              <Neighbours
                tenant={tenant}
                assetId={list.id}
                direction={list.direction}
                q={search[list.direction] ?? ""}
                onFilter={(q) => set({ [list.direction]: q })}
                tab="graph"
              />
            </Drawer>
          ) : (
            opened && (
              <AssetDrawer
                key={opened.id}
                tenant={tenant}
                asset={opened}
                start={asset}
                onClose={() => set({ node: undefined })}
              />
            )
          )
        }
      >
        <Loaded result={result}>
          {(data) => (
            <GraphFrame
              label={text.graphOf(asset.name)}
              reply={data}
              wish={wish}
              onColumns={(id) => set({ columns: withColumn(search.columns, id) })}
              onOpen={(id) => {
                const hop = listOf(id);
                const opens = hop === undefined ? { node: id, list: undefined } : { list: hop, node: undefined };
                set({ ...opens, ...NO_FILTER });
              }}
              onHop={(hop) => set({ expand: withHop(search.expand, hop) })}
              number={number}
            />
          )}
        </Loaded>
      </Split>
    </>
  );
}

interface GraphFrameProps {
  label: string;
  reply: GraphReply;
  wish: Wish;
  onOpen(id: string): void;
  /** Expands the table of this column. */
  onColumns(id: string): void;
  onHop(hop: string): void;
  number(value: number): string;
}

function GraphFrame({ label, reply, wish, onOpen, onColumns, onHop, number }: GraphFrameProps) {
  const text = useWords(lineage);
  const { nodes, edges, start, assets, unused, others } = useMemo(
    () => drawnGraph(reply, wish, text, number),
    [reply, wish, text, number],
  );
  const marked = nodes.map((node) =>
    node.id === reply.start ? { ...node, mark: text.here, markTone: "strong" as const } : node,
  );
  return (
    <div className={styles.view}>
      <p className={styles.note} role="status">
        {text.assetsShown(assets, number(assets))}
        {unused > 0 && ` ${text.unusedColumns(unused, number(unused))}`}
        {reply.partial && ` ${reply.reason === "TIME" ? text.cutByTime : text.cutBySize}`}
        {reply.edges.length === 0 && ` ${text.noLineage}`}
      </p>
      <Graph
        label={label}
        nodes={marked}
        edges={edges}
        selected={wish.selected ?? (nodes.some(({ id }) => id === reply.start) ? reply.start : undefined)}
        start={start}
        onOpen={(id) => (others.has(id) ? onColumns : onOpen)(id)}
        onMore={(id, side) => onHop(`${id}:${side === "before" ? "up" : "down"}`)}
      />
    </div>
  );
}

interface AssetDrawerProps {
  tenant: string;
  asset: Asset;
  /** The asset of the page. */
  start: Asset;
  onClose(): void;
}

function AssetDrawer({ tenant, asset, start, onClose }: AssetDrawerProps) {
  const text = useWords(lineage);
  const to = { to: "/lineage/assets/$assetId", params: { assetId: asset.id } } as const;
  return (
    <Drawer title={asset.name} onClose={onClose}>
      <KindMark kind={asset.kind} />
      <Fields
        rows={[
          [text.fullName, <code key="name">{asset.fullName}</code>],
          [text.description, asset.description],
        ]}
      />
      <nav className={styles.links} aria-label={asset.name}>
        <Link {...to} search={{ tenant }}>
          {text.openPage}
        </Link>
        {asset.id !== start.id && (
          <Link {...to} search={{ tenant, tab: "graph" }}>
            {text.focusHere}
          </Link>
        )}
        <Link {...to} search={{ tenant, tab: "impact" }}>
          {text.impact}
        </Link>
        {asset.id !== start.id && (
          <Link
            to="/lineage/assets/$assetId"
            params={{ assetId: start.id }}
            search={{ tenant, tab: "path", to: asset.id }}
          >
            {text.pathFrom(start.name)}
          </Link>
        )}
      </nav>
    </Drawer>
  );
}
