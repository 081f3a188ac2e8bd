/** One run: its state and reason, its nodes as graph or table, the node that failed, and what can be done about it. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Tabs } from "../../parts/controls/Tabs.tsx";
import { Split } from "../../parts/dialogs/Drawer.tsx";
import { DRAWN_MAX } from "../../parts/graph/model.ts";
import { Loaded, Page } from "../../parts/page/Page.tsx";
import { Sentence } from "../../parts/page/Sentence.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useWords } from "../../words/words.ts";
import { paths, type Run, type RunNode } from "../api.ts";
import { ChainLinks } from "../ChainLinks.tsx";
import styles from "../chains.module.css";
import { Compare } from "../compare/Compare.tsx";
import { Gantt } from "../gantt/Gantt.tsx";
import { RunGrid } from "../grid/RunGrid.tsx";
import { LogTab } from "../logs/LogTab.tsx";
import { Trigger } from "../RunList.tsx";
import { type RunSearch, runRoute } from "../routes.ts";
import { RUN_STATES } from "../states.ts";
import { VersionLink } from "../versions/VersionLink.tsx";
import { chainWords } from "../words.ts";
import { NodePanel } from "./NodePanel.tsx";
import { NodeTable } from "./NodeTable.tsx";
import { firstFailed, useRunNodes } from "./nodes.ts";
import { PreviewBar } from "./PreviewBar.tsx";
import { type Preview, type Previews, usePreviews } from "./preview.ts";
import { RunGraph } from "./RunGraph.tsx";
import { runWords } from "./words.ts";

export function RunPage() {
  const { runId } = runRoute.useParams();
  // Another run is another page: nothing of the last one stays selected.
  return <RunPageOf key={runId} runId={runId} />;
}

function RunPageOf({ runId }: { runId: string }) {
  const text = useWords(chainWords);
  const navigate = useNavigate();
  const run = useLive<Run>(paths.run(runId), [{ kind: "run", id: runId }]);
  const nodes = useRunNodes(runId);
  const previews = usePreviews(runId, ({ nodeId }: Preview) => {
    // It stays in view when it is not the failed one any more.
    if (nodeId === undefined) return;
    void navigate({
      to: "/chains/runs/$runId",
      params: { runId },
      search: (before) => ({ ...before, node: nodeId, panel: undefined }),
      replace: true,
    });
  });
  const data = run.data?.runId === runId ? run.data : undefined;
  return (
    <Page
      title={data ? <RunName run={data} /> : text.runs}
      aside={data ? <StateMark state={RUN_STATES[data.status]} /> : run.error && <ChainLinks />}
      actions={data && <RunActions run={data} previews={previews} />}
    >
      {data && <Facts run={data} />}
      <Loaded result={run}>
        {() => (
          <Loaded result={nodes}>{(all) => data && <RunBody run={data} nodes={all} previews={previews} />}</Loaded>
        )}
      </Loaded>
    </Page>
  );
}

/** Its chain, which is a link, and its opTime. */
function RunName({ run: { chainId, jobName, opTime } }: { run: Run }) {
  return (
    <>
      {chainId === null ? (
        jobName
      ) : (
        <Link to="/chains/$chainId" params={{ chainId }}>
          {jobName}
        </Link>
      )}
      {opTime !== null && ` · ${opTime}`}
    </>
  );
}

function Facts({ run }: { run: Run }) {
  return (
    <>
      {run.reason !== null && (
        <p className={run.status === "FAILED" ? styles.reason : undefined}>
          <Sentence text={run.reason} />
        </p>
      )}
      <div className={styles.facts}>
        <Trigger run={run} />
        <VersionLink run={run} />
        {run.startedAt !== null && <Time at={run.startedAt} />}
        <span>
          <Elapsed from={run.startedAt} to={run.endedAt} />
        </span>
      </div>
    </>
  );
}

function RunActions({ run: { status }, previews }: { run: Run; previews: Previews }) {
  const text = useWords(chainWords);
  const isPending = previews.isBusy;
  const why = useWhyNot("run:control");
  return (
    <>
      {status === "STOPPED" && (
        <Button icon="play" why={why} isPending={isPending} onPress={() => void previews.ask("resume")}>
          {text.resume}
        </Button>
      )}
      {(status === "FAILED" || status === "STOPPED") && (
        <Button icon="retry" why={why} isPending={isPending} onPress={() => void previews.ask("retry")}>
          {text.retry}
        </Button>
      )}
      {(status === "PENDING" || status === "RUNNING") && (
        <Button icon="stop" kind="danger" why={why} isPending={isPending} onPress={() => void previews.ask("stop")}>
          {text.stop}
        </Button>
      )}
    </>
  );
}

interface RunBodyProps {
  run: Run;
  nodes: readonly RunNode[];
  previews: Previews;
}

function RunBody({ run, nodes, previews }: RunBodyProps) {
  const text = useWords(chainWords);
  const more = useWords(runWords);
  const { runId, chainId, jobName: name } = run;
  const navigate = useNavigate();
  const search = runRoute.useSearch();
  // Decided once: a panel that opens by itself later would move what the person looks at.
  const [failed] = useState(() => firstFailed(nodes));
  const { preview } = previews;
  const asked = search.tab ?? (nodes.length > DRAWN_MAX ? "table" : "graph");
  const tab = preview && asked !== "table" ? "graph" : asked;
  // The sentences of a comparison need the room until a node is asked for.
  const opened = search.node ?? (tab === "compare" ? undefined : failed);
  const selected = search.panel === "closed" ? undefined : opened;
  const node = nodes.find(({ nodeId }) => nodeId === selected);
  const go = (change: RunSearch, replace = true) =>
    void navigate({
      to: "/chains/runs/$runId",
      params: { runId },
      search: (before) => ({ ...before, ...change }),
      replace,
    });
  const shown = {
    nodes,
    selected,
    preview,
    // On a phone the panel takes the page, so the way back from it is that of a page.
    onOpen: (nodeId: string) =>
      go({ node: nodeId, panel: undefined, attempt: undefined, line: undefined }, node !== undefined),
  };
  // A run that is too large to be drawn begins with its table, so the graph needs a name in the address.
  const graph = { name: "graph", title: text.graph };
  const table = { name: "table", title: text.table, count: nodes.length };
  const views = [
    { name: "gantt", title: more.gantt },
    ...(chainId === null ? [] : [{ name: "grid", title: more.grid }]),
  ];
  const details = [
    { name: "log", title: more.log },
    { name: "compare", title: more.compare },
  ];
  const tabs = nodes.length > DRAWN_MAX ? [table, graph, ...views, ...details] : [graph, ...views, table, ...details];
  return (
    <>
      <Tabs tabs={tabs} current={tab} label={text.views} />
      <PreviewBar previews={previews} all={nodes.length} />
      <Split
        drawer={
          node &&
          tab !== "log" && (
            <div className={styles.panel} data-preview={preview ? true : undefined}>
              <NodePanel
                key={node.nodeId}
                run={run}
                node={node}
                previews={previews}
                attempt={search.attempt}
                line={search.line}
                onLog={go}
                onClose={() => go({ node: undefined, panel: "closed", attempt: undefined, line: undefined })}
              />
            </div>
          )
        }
      >
        {tab === "graph" && (
          <RunGraph label={text.graphOf(name)} {...shown} depth={search.depth} onDepth={(depth) => go({ depth })} />
        )}
        {tab === "table" && <NodeTable label={text.nodesOf(name)} {...shown} />}
        {tab === "gantt" && <Gantt run={run} {...shown} />}
        {tab === "grid" && chainId !== null && (
          <RunGrid
            chainId={chainId}
            name={name}
            runId={runId}
            nodeId={selected}
            until={search.until}
            onUntil={(until) => go({ until })}
          />
        )}
        {tab === "log" && (
          <LogTab
            runId={runId}
            nodes={nodes}
            selected={selected}
            attempt={search.attempt}
            line={search.line}
            filter={search}
            onChange={go}
          />
        )}
        {tab === "compare" && (
          <Compare
            runId={runId}
            other={search.with}
            onOther={(other) => go({ with: other })}
            selected={selected}
            onOpen={shown.onOpen}
          />
        )}
      </Split>
    </>
  );
}
