/**
 * A list of runs of any length, newest first. The loaded pages decide which runs are listed. The current state is fetched only for
 * the rows in view, in one request, and the newest runs are fetched to count new ones. So a change costs two requests, however far
 * the user has scrolled. New runs wait behind a button; a run that no longer matches the filter stays until that button is pressed.
 */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { ApiError } from "../api/client.ts";
import { fetchFresh, keepOfSameSubject, onEndOf, useLive } from "../api/live.ts";
import { useSettled } from "../parts/controls/use-settled.ts";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { Sentence } from "../parts/page/Sentence.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Elapsed } from "../parts/times/Elapsed.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type Run, type RunPage } from "./api.ts";
import styles from "./chains.module.css";
import type { RunsSearch } from "./routes.ts";
import { RUN_STATES } from "./states.ts";
import { chainWords } from "./words.ts";

const PAGE_RUNS = 500;
const HEAD_RUNS = 100;
/** A busy server sends hints about runs four times a second. */
const ROWS_PACE_MS = 500;
const HEAD_PACE_MS = 1_000;

interface RunListProps {
  search: RunsSearch;
  /** Of this chain only. */
  chainId?: string;
  onClear(): void;
}

export function RunList({ search: { person, ...filters }, chainId, onClear }: RunListProps) {
  const pathOf = (page: { size: number; after?: string | undefined }) =>
    paths.runs({ ...filters, triggeredBy: person, chainId, ...page });
  const text = useWords(chainWords);
  const shared = useWords(common);
  const navigate = useNavigate();
  const [generation, setGeneration] = useState(0);
  const [inView, setInView] = useState("");
  const head = useLive<RunPage>(pathOf({ size: HEAD_RUNS }), [{ kind: "run" }], {
    atMostEveryMs: HEAD_PACE_MS,
  });
  const list = useInfiniteQuery<RunPage, ApiError, readonly Run[], readonly unknown[], string | undefined>({
    queryKey: [pathOf({ size: PAGE_RUNS }), "runs", generation],
    queryFn: ({ pageParam, queryKey, signal }) =>
      fetchFresh<RunPage>(pathOf({ size: PAGE_RUNS, after: pageParam }), queryKey, signal),
    initialPageParam: undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    select: ({ pages }) => pages.flatMap(({ items }) => items),
    placeholderData: keepOfSameSubject(pathOf({ size: PAGE_RUNS })),
    staleTime: "static",
    // Returning to the list loads it anew.
    gcTime: 0,
  });
  const newest = useRunsNow(inView);
  const rows = useRows(list.data ?? NO_RUNS, head.data?.items ?? NO_RUNS, newest);
  const known = useMemo(() => new Set(list.data?.map(({ runId }) => runId)), [list.data]);
  const oldest = list.hasNextPage ? (list.data?.at(-1)?.createdAt ?? "") : "";
  const isNew = ({ runId, createdAt }: Run) => !known.has(runId) && createdAt >= oldest;
  const fresh = known.size === 0 ? 0 : (head.data?.items.filter(isNew).length ?? 0);
  const isUnread = rows.length === 0 && (list.data === undefined || list.isPlaceholderData);
  const isFiltered = [person, ...Object.values(filters)].some((value) => value !== undefined);
  return (
    <Loaded result={{ data: isUnread ? undefined : rows, error: list.error, refetch: list.refetch }}>
      {() => (
        <div className={styles.list}>
          <DataList
            label={text.runs}
            rows={rows}
            {...(head.data && { total: Math.max(head.data.total, rows.length) })}
            columns={columnsOf(text, shared, chainId !== undefined)}
            keyOf={({ runId }) => runId}
            // Until a page with runs is loaded, the list follows the newest runs live.
            live={known.size === 0 ? head.live : undefined}
            onOpen={({ runId }) => void navigate({ to: "/chains/runs/$runId", params: { runId } })}
            onEnd={onEndOf(list)}
            onView={(shown) => setInView(shown.map(({ runId }) => runId).join(","))}
            more={{ count: fresh, onShow: () => setGeneration(generation + 1) }}
            empty={text.noRuns}
            {...(isFiltered && { onClear })}
            fill
          />
        </div>
      )}
    </Loaded>
  );
}

const NO_RUNS: readonly Run[] = [];

/** The runs with these ids as they are now, in one request, which is made again when one of them has changed. */
function useRunsNow(inView: string): readonly Run[] {
  const asked = useSettled(inView);
  const ids = asked.split(",").filter(Boolean);
  const { data } = useQuery<RunPage, ApiError>({
    queryKey: [paths.runs({ ids: asked })],
    queryFn: ({ queryKey, signal }) => fetchFresh<RunPage>(paths.runs({ ids: asked }), queryKey, signal),
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    // Each place in the list asks for other runs.
    gcTime: 0,
    meta: { watches: ids.map((id) => ({ kind: "run", id })), atMostEveryMs: ROWS_PACE_MS },
  });
  return data?.items ?? NO_RUNS;
}

interface Latest {
  loaded: readonly Run[];
  head: readonly Run[];
  inView: readonly Run[];
  /** Of these, each as it was last read. */
  runs: ReadonlyMap<string, Run>;
  rows: readonly Run[];
}

const NOTHING: Latest = { loaded: NO_RUNS, head: NO_RUNS, inView: NO_RUNS, runs: new Map(), rows: NO_RUNS };

/** The loaded runs, each as it was last read. Before there are any, the newest. */
function useRows(loaded: readonly Run[], head: readonly Run[], inView: readonly Run[]): readonly Run[] {
  const [latest, setLatest] = useState(NOTHING);
  if (latest.loaded === loaded && latest.head === head && latest.inView === inView) return latest.rows;
  const runs = new Map<string, Run>();
  for (const run of [...loaded, ...head, ...inView])
    runs.set(run.runId, newer(run, runs.get(run.runId) ?? latest.runs.get(run.runId)));
  const rows = loaded.length === 0 ? head : loaded.map((run) => runs.get(run.runId) ?? run);
  setLatest({ loaded, head, inView, runs, rows });
  return rows;
}

/** `one`, unless `other` has a newer version of the run. */
function newer(one: Run, other: Run | undefined): Run {
  return other && other.updatedAt > one.updatedAt ? other : one;
}

function columnsOf(
  text: (typeof chainWords)["en"],
  shared: (typeof common)["en"],
  isOfOneChain: boolean,
): readonly Column<Run>[] {
  return [
    {
      name: "state",
      title: shared.state,
      width: "100px",
      cell: ({ status }) => <StateMark state={RUN_STATES[status]} />,
    },
    ...(isOfOneChain
      ? []
      : [{ name: "chain", title: text.chain, width: "minmax(64px, 2fr)", cell: ({ jobName }: Run) => jobName }]),
    {
      name: "opTime",
      title: text.opTime,
      width: "minmax(88px, 1fr)",
      cell: ({ runId, opTime }) => (
        <Link to="/chains/runs/$runId" params={{ runId }} title={runId}>
          {opTime ?? text.noOpTime}
        </Link>
      ),
    },
    {
      name: "reason",
      title: shared.reason,
      width: "minmax(60px, 4fr)",
      isBelow: true,
      cell: (run) =>
        run.reason === null ? (
          <span className="narrow-only">
            {run.startedAt && <Time at={run.startedAt} />} · <Trigger run={run} />
          </span>
        ) : (
          <span title={run.reason}>
            <Sentence text={run.reason} />
          </span>
        ),
    },
    {
      name: "trigger",
      title: text.trigger,
      width: "minmax(150px, 2fr)",
      wideOnly: true,
      cell: (run) => <Trigger run={run} />,
    },
    {
      name: "version",
      title: text.version,
      width: "60px",
      wideOnly: true,
      align: "end",
      cell: ({ chainVersion }) => chainVersion,
    },
    {
      name: "started",
      title: text.started,
      width: "140px",
      wideOnly: true,
      cell: ({ startedAt }) => startedAt && <Time at={startedAt} />,
    },
    {
      name: "took",
      title: shared.duration,
      width: "70px",
      align: "end",
      cell: (run) => <Elapsed from={run.startedAt} to={run.endedAt} />,
    },
  ];
}

export function Trigger({ run: { trigger, triggeredBy } }: { run: Run }) {
  const text = useWords(chainWords);
  const names: Readonly<Record<string, string>> = {
    api: text.byHand,
    schedule: text.schedule,
    backfill: text.backfill,
    arrival: text.arrival,
    chain: text.subChain,
    map: text.map,
  };
  return (
    <span title={triggeredBy}>
      {names[trigger] ?? trigger} · {triggeredBy}
    </span>
  );
}
