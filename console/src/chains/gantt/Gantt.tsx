/** When the nodes of a run waited and ran: a row for each node, a bar for each attempt, and the critical path marked. */
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useLive } from "../../api/live.ts";
import { type Column, DataList } from "../../parts/page/DataList.tsx";
import { Loaded } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { GLYPHS, type State } from "../../parts/states/state.ts";
import { durationText } from "../../parts/times/durations.ts";
import { useNow } from "../../parts/times/Time.tsx";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { paths, type Run, type RunNode, type Timeline } from "../api.ts";
import styles from "../chains.module.css";
import { runWords } from "../run/words.ts";
import { NODE_STATES } from "../states.ts";
import { chainWords } from "../words.ts";
import own from "./Gantt.module.css";
import { type Bar, type GanttRow, rowsOf, type Scale, scaleOf } from "./layout.ts";

interface GanttProps {
  run: Run;
  nodes: readonly RunNode[];
  selected: string | undefined;
  onOpen(nodeId: string): void;
}

const PATH_SHOWN = 6;

export function Gantt(props: GanttProps) {
  const { run } = props;
  const timeline = useLive<Timeline>(paths.timeline(run.runId), [{ kind: "run", id: run.runId }]);
  return (
    <Loaded result={timeline}>
      {(data) =>
        run.endedAt === null ? <Growing {...props} timeline={data} /> : <Bars {...props} timeline={data} now={0} />
      }
    </Loaded>
  );
}

/** The bars of what runs grow every second. */
function Growing(props: GanttProps & { timeline: Timeline }) {
  return <Bars {...props} now={useNow()} />;
}

function Bars({ run, nodes, timeline, selected, onOpen, now }: GanttProps & { timeline: Timeline; now: number }) {
  const text = useWords(runWords);
  const chain = useWords(chainWords);
  const shared = useWords(common);
  const { startedAt } = run;
  const rows = useMemo(() => rowsOf(nodes, timeline, startedAt, now), [nodes, timeline, startedAt, now]);
  const scale = useMemo(() => scaleOf(rows), [rows]);
  const hasPauses = rows.some(({ pausedMs }) => pausedMs > 0);
  const { criticalPath, truncated } = timeline;
  return (
    <div className={styles.view}>
      <div className={own.legend}>
        <span>
          <i className={own.wait} /> {text.waited}
        </span>
        {hasPauses && (
          <span>
            <i className={own.pause} /> {text.paused}
          </span>
        )}
        <span>
          <i className={own.run} style={colourOf("success")} /> {text.ran}
        </span>
        {criticalPath.length > 0 && (
          <span className={own.path}>
            <b aria-hidden="true">◆</b> {text.criticalPath}: {criticalPath.slice(0, PATH_SHOWN).join(" → ")}
            {criticalPath.length > PATH_SHOWN && ` → … (${shared.more(criticalPath.length - PATH_SHOWN)})`}
          </span>
        )}
        {truncated && <span>{text.notAllAttempts}</span>}
      </div>
      <DataList
        label={text.ganttOf(run.jobName)}
        rows={rows}
        columns={columnsOf({ text, chain, shared }, scale, hasPauses)}
        keyOf={({ node }) => node.nodeId}
        selected={selected}
        onOpen={({ node }) => onOpen(node.nodeId)}
        fill
      />
    </div>
  );
}

interface Texts {
  text: (typeof runWords)["en"];
  chain: (typeof chainWords)["en"];
  shared: (typeof common)["en"];
}

function columnsOf({ text, chain, shared }: Texts, scale: Scale, hasPauses: boolean): readonly Column<GanttRow>[] {
  const spent = (name: "waitedMs" | "pausedMs", title: string, width: string): Column<GanttRow> => ({
    name,
    title,
    width,
    wideOnly: true,
    align: "end",
    cell: (row) => (row[name] > 0 ? durationText(row[name]) : ""),
  });
  return [
    {
      name: "node",
      title: chain.node,
      width: "minmax(110px, 200px)",
      cell: ({ node, isCritical }) => (
        <span className={own.node} title={node.nodeId} data-critical={isCritical || undefined}>
          <StateMark state={NODE_STATES[node.status]} compact />
          <b aria-hidden="true" className={own.mark}>
            {isCritical && " ◆"}
          </b>
          {node.nodeId}
          {isCritical && <span className="visually-hidden">{text.critical}</span>}
        </span>
      ),
    },
    {
      name: "time",
      title: <Axis scale={scale} label={text.times} />,
      width: "minmax(140px, 1fr)",
      cell: (row) => <Lane row={row} scale={scale} text={text} shared={shared} />,
    },
    spent("waitedMs", text.waited, "70px"),
    ...(hasPauses ? [spent("pausedMs", text.paused, "120px")] : []),
    {
      name: "ran",
      title: text.ran,
      width: "70px",
      align: "end",
      cell: ({ node, ranMs }) => (node.startedAt !== null || ranMs > 0 ? durationText(ranMs) : ""),
    },
  ];
}

function Axis({ scale, label }: { scale: Scale; label: string }) {
  return (
    <span className={own.axis}>
      <span className="visually-hidden">{label}</span>
      {scale.ticks.map(({ at, ms }) => (
        <span key={ms} className={own.tick} style={{ left: percent(at) }}>
          {durationText(ms)}
        </span>
      ))}
    </span>
  );
}

interface LaneProps {
  row: GanttRow;
  scale: Scale;
  text: Texts["text"];
  shared: Texts["shared"];
}

function Lane({ row: { node, bars, isCritical }, scale, text, shared }: LaneProps) {
  return (
    <span className={own.lane} data-critical={isCritical || undefined}>
      {scale.gaps.map(({ from, to }) => (
        <span
          key={from}
          className={own.gap}
          title={text.gapBar(durationText(to - from))}
          style={{ left: percent(scale.at(from)), width: percent(scale.at(to) - scale.at(from)) }}
        />
      ))}
      {bars.map((bar) => (
        <BarMark
          key={`${bar.kind} ${bar.from}`}
          nodeId={node.nodeId}
          bar={bar}
          scale={scale}
          text={text}
          shared={shared}
        />
      ))}
    </span>
  );
}

function BarMark({ nodeId, bar, scale, text, shared }: Omit<LaneProps, "row"> & { nodeId: string; bar: Bar }) {
  const { kind, from, to, attempt, state, error } = bar;
  const left = scale.at(from);
  const style = { left: `min(${percent(left)}, 100% - 6px)`, width: percent(scale.at(to) - left) };
  const took = durationText(to - from);
  if (kind !== "run")
    return <span className={own[kind]} style={style} title={(kind === "wait" ? text.waitBar : text.pauseBar)(took)} />;
  const label = text.attemptBar(attempt, shared[state], took);
  return (
    <Link
      to="."
      search={((before: object) => ({ ...before, node: nodeId, attempt, panel: undefined })) as never}
      replace
      tabIndex={-1}
      className={own.run}
      style={{ ...style, ...colourOf(state) }}
      aria-label={label}
      title={error === null ? label : `${label}: ${error}`}
    >
      <span aria-hidden="true">{GLYPHS[state]}</span>
    </Link>
  );
}

function colourOf(state: State): React.CSSProperties {
  return { "--bar": `var(--${state})` } as React.CSSProperties;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}
