/** One chain: its runs, its graph, its definition with all versions, its schedules, and how to start it. */
import { lazy, Suspense, useMemo } from "react";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Tabs } from "../parts/controls/Tabs.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { Graph } from "../parts/graph/Graph.tsx";
import { Failure, Loaded, Page } from "../parts/page/Page.tsx";
import { useWords } from "../words/words.ts";
import { type Chain, paths } from "./api.ts";
import { ChainLinks } from "./ChainLinks.tsx";
import styles from "./chains.module.css";
import { definitionWords } from "./editor/words.ts";
import { RunGrid } from "./grid/RunGrid.tsx";
import { RunFilters } from "./RunFilters.tsx";
import { RunList } from "./RunList.tsx";
import { type ChainSearch, chainRoute } from "./routes.ts";
import { runWords } from "./run/words.ts";
import { Schedules } from "./start/Schedules.tsx";
import { iconOf } from "./states.ts";
import { chainWords } from "./words.ts";

// They read YAML, which the list of runs does not need.
const ChainEditor = lazy(() => import("./editor/ChainEditor.tsx").then((file) => ({ default: file.ChainEditor })));
const VersionsView = lazy(() => import("./versions/VersionsView.tsx").then((file) => ({ default: file.VersionsView })));
const StartDrawer = lazy(() => import("./start/StartDrawer.tsx").then((file) => ({ default: file.StartDrawer })));

export function ChainPage() {
  const text = useWords(chainWords);
  const definition = useWords(definitionWords);
  const { chainId } = chainRoute.useParams();
  const more = useWords(runWords);
  const { tab = "runs", start, until, node, depth, ...search } = chainRoute.useSearch();
  const { status, opTime, trigger, person, q, waitsFor } = search;
  const filters = { status, opTime, trigger, person, q, waitsFor };
  const navigate = chainRoute.useNavigate();
  const result = useLive<Chain>(paths.chain(chainId), [{ kind: "chain", id: chainId }]);
  const chain = result.data?.chainId === chainId ? result.data : undefined;
  const go = (change: ChainSearch, replace = false) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace });
  const tabs = [
    { name: "runs", title: text.runs },
    { name: "grid", title: more.grid },
    { name: "graph", title: text.graph },
    { name: "definition", title: definition.definition },
    { name: "versions", title: definition.versions },
    { name: "schedules", title: definition.schedules },
  ];
  return (
    <Page
      title={chain?.name ?? text.chain}
      aside={
        chain ? (
          <span>
            {text.versionOf(chain.version)}
            {!chain.enabled && ` · ${text.disabled}`}
          </span>
        ) : (
          result.error && <ChainLinks />
        )
      }
      actions={chain && <ChainActions chain={chain} onStart={() => go({ start: true })} />}
    >
      {!chain && result.error ? (
        <Failure error={result.error} onRetry={() => void result.refetch()} />
      ) : (
        <>
          <Tabs tabs={tabs} current={tab} label={text.views} />
          <Split
            drawer={
              start &&
              chain && (
                <Suspense>
                  <StartDrawer key={chainId} chain={chain} onClose={() => go({ start: undefined })} />
                </Suspense>
              )
            }
          >
            {tab === "runs" && (
              <>
                <RunFilters search={filters} onChange={(change) => go(change, true)} />
                <RunList
                  search={filters}
                  chainId={chainId}
                  onClear={() => void navigate({ search: {}, replace: true })}
                />
              </>
            )}
            {tab === "grid" && (
              <RunGrid
                chainId={chainId}
                name={chain?.name ?? ""}
                until={until}
                onUntil={(next) => go({ until: next })}
              />
            )}
            {tab === "schedules" && <Schedules chainId={chainId} />}
            {(tab === "graph" || tab === "definition" || tab === "versions") && (
              <Loaded result={{ ...result, data: chain }}>
                {(data) => (
                  <Suspense>
                    {tab === "graph" && (
                      <ChainGraph chain={data} selected={node} depth={depth} onChange={(change) => go(change, true)} />
                    )}
                    {tab === "definition" && <ChainEditor key={chainId} chain={data} />}
                    {tab === "versions" && <VersionsView chain={data} />}
                  </Suspense>
                )}
              </Loaded>
            )}
          </Split>
        </>
      )}
    </Page>
  );
}

function ChainActions({ chain: { chainId, name, enabled }, onStart }: { chain: Chain; onStart(): void }) {
  const text = useWords(definitionWords);
  const missing = useWhyNot("chain:write");
  const cannotStart = useWhyNot("run:write");
  const { isPending, run } = useAction();
  const setEnabled = () =>
    run(async () => {
      await act(paths.chainAction(chainId, enabled ? "disable" : "enable"), "POST");
      await refresh({ kind: "chain", id: chainId });
      return enabled ? text.disabled(name) : text.enabled(name);
    });
  return (
    <>
      <Button isPending={isPending} why={missing} onPress={setEnabled}>
        {enabled ? text.disable : text.enable}
      </Button>
      <Button
        kind="primary"
        icon="play"
        why={cannotStart ?? (enabled ? undefined : text.enableFirst)}
        onPress={onStart}
      >
        {text.start}
      </Button>
    </>
  );
}

interface ChainGraphProps {
  chain: Chain;
  selected: string | undefined;
  depth: string | undefined;
  onChange(change: Pick<ChainSearch, "node" | "depth">): void;
}

function ChainGraph({ chain, selected, depth, onChange }: ChainGraphProps) {
  const text = useWords(chainWords);
  const nodes = useMemo(
    () => chain.dag.nodes.map(({ id, type }) => ({ id, title: id, subtitle: type, icon: iconOf(type) })),
    [chain],
  );
  const edges = useMemo(
    () => chain.dag.nodes.flatMap(({ id, dependsOn = [] }) => dependsOn.map((from) => ({ from, to: id }))),
    [chain],
  );
  return (
    <div className={styles.view}>
      <Graph
        label={text.graphOf(chain.name)}
        nodes={nodes}
        edges={edges}
        selected={selected}
        onOpen={(node) => onChange({ node })}
        depth={depth}
        onDepth={(next) => onChange({ depth: next })}
      />
    </div>
  );
}
