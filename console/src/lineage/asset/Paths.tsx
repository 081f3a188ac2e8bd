/** The ways of data between this asset and another: all of them counted, the shortest drawn and listed. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { useLive } from "../../api/live.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Graph } from "../../parts/graph/Graph.tsx";
import type { GraphNode } from "../../parts/graph/model.ts";
import { Empty, Loaded } from "../../parts/page/Page.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { ASSETS, ASSETS_PACE, type ListedAsset, type PathsReply, paths } from "../api.ts";
import { iconOf, nearPlaceOf } from "../kinds.ts";
import styles from "../lineage.module.css";
import { lineage } from "../words.ts";
import type { AssetViewProps } from "./AssetPage.tsx";
import { AssetPicker } from "./AssetPicker.tsx";

const SHOWN = 5;
const SHOWN_MAX = 100;

export function Paths({ tenant, asset, search, set }: AssetViewProps) {
  const text = useWords(lineage);
  const limit = Math.min(Math.max(Number(search.paths) || SHOWN, 1), SHOWN_MAX);
  const { to } = search;
  const result = useLive<PathsReply>(
    to === undefined ? undefined : paths.paths({ tenant, from: asset.id, to, limit }),
    ASSETS,
    ASSETS_PACE,
  );
  return (
    <>
      <div className={styles.bar}>
        <span>{text.between(asset.name)}</span>
        <AssetPicker
          tenant={tenant}
          label={text.otherAsset}
          except={asset.id}
          onPick={({ id }) => set({ to: id, path: undefined, paths: undefined })}
        />
      </div>
      {to === undefined ? (
        <Empty>{text.choosePath}</Empty>
      ) : (
        <Loaded result={result}>
          {(reply) => (
            <Found
              reply={reply}
              tenant={tenant}
              chosen={search.path === undefined ? undefined : Number(search.path)}
              onChoose={(path) => set({ path })}
              onMore={
                reply.paths.length < Math.min(reply.pathCount, SHOWN_MAX)
                  ? () => set({ paths: String(Math.min(limit * 4, SHOWN_MAX)) })
                  : undefined
              }
            />
          )}
        </Loaded>
      )}
    </>
  );
}

interface FoundProps {
  reply: PathsReply;
  tenant: string;
  chosen: number | undefined;
  onChoose(path: string | undefined): void;
  onMore: (() => void) | undefined;
}

function Found({ reply, tenant, chosen, onChoose, onMore }: FoundProps) {
  const text = useWords(lineage);
  const { number } = useFormats();
  const navigate = useNavigate();
  const byId = useMemo(() => new Map(reply.nodes.map((node) => [node.id, node])), [reply]);
  const name = (id: string) => byId.get(id)?.name ?? id;
  const path = chosen === undefined ? undefined : reply.paths[chosen];
  const on = path && new Set(path);
  const steps = path && new Set(path.slice(1).map((id, at) => `${path[at]} ${id}`));
  const nodes = reply.nodes.map(
    (node): GraphNode => ({ ...cardOf(node), isFaded: on !== undefined && !on.has(node.id) }),
  );
  const edges = reply.edges.map(({ from, to }) => ({
    from,
    to,
    isFaded: steps !== undefined && !steps.has(`${from} ${to}`),
  }));
  if (reply.direction === null) {
    return (
      <Empty>
        {text.noPath} {reply.partial && text.cutBySize}
      </Empty>
    );
  }
  const [first = [], isAtLeast] = [reply.paths[0], reply.pathCount >= reply.pathCountMax];
  const ends = text.dataGo(name(first[0] ?? ""), name(first.at(-1) ?? ""));
  const count = `${number(reply.pathCount)}${isAtLeast ? "+" : ""}`;
  return (
    <>
      <p className={styles.pair} role="status">
        <b>{text.pathsShown(number(reply.paths.length), count)}</b> <span>{ends}</span>
        {reply.partial && <span className={styles.soft}>{text.cutBySize}</span>}
        {onMore && <Button onPress={onMore}>{text.showMorePaths}</Button>}
      </p>
      <div className={styles.view} data-short>
        <Graph
          label={text.pathsGraph}
          nodes={nodes}
          edges={edges}
          onOpen={(id) =>
            void navigate({ to: "/lineage/assets/$assetId", params: { assetId: id }, search: { tenant } })
          }
        />
      </div>
      <ol className={styles.paths} aria-label={text.paths}>
        {reply.paths.map((one, index) => (
          <li key={one.join(" ")} data-chosen={index === chosen || undefined}>
            <button
              type="button"
              className={styles.linkButton}
              aria-pressed={index === chosen}
              onClick={() => onChoose(index === chosen ? undefined : String(index))}
            >
              {text.steps(one.length - 1)}
            </button>
            <span className={styles.way}>
              {one.map((id) => (
                <Link key={id} to="/lineage/assets/$assetId" params={{ assetId: id }} search={{ tenant }}>
                  {name(id)}
                </Link>
              ))}
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}

function cardOf(asset: ListedAsset): GraphNode {
  return { id: asset.id, title: asset.name, subtitle: nearPlaceOf(asset), icon: iconOf(asset.kind) };
}
