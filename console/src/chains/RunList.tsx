/**
 * Runs, newest first, of any number. Pages that were loaded stay as they are; the newest runs are read again on every change,
 * so a hint costs one request however far the person has scrolled. New runs wait until they are asked for.
 */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { type ApiError, call } from "../api/client.ts";
import { onEndOf, useLive } from "../api/live.ts";
import { Button } from "../parts/controls/Button.tsx";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time, useNow } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type Run, type RunPage } from "./api.ts";
import styles from "./chains.module.css";
import { RUN_STATES, tookMs } from "./states.ts";
import { chainWords } from "./words.ts";

const PAGE_RUNS = 500;
const HEAD_RUNS = 100;

type Query = Readonly<Record<string, string | undefined>>;

export function RunList({ query, isOfOneChain }: { query: Query; isOfOneChain?: boolean }) {
  const text = useWords(chainWords);
  const shared = useWords(common);
  const navigate = useNavigate();
  const [generation, setGeneration] = useState(0);
  const head = useLive<RunPage>(paths.runs({ ...query, size: HEAD_RUNS }), [{ kind: "run" }]);
  const list = useInfiniteQuery<RunPage, ApiError, readonly Run[], readonly unknown[], string | undefined>({
    queryKey: [paths.runs(query), "runs", generation],
    queryFn: async ({ pageParam, signal }) =>
      (await call<RunPage>(paths.runs({ ...query, size: PAGE_RUNS, after: pageParam }), { signal })).data,
    initialPageParam: undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    select: ({ pages }) => pages.flatMap(({ items }) => items),
    placeholderData: keepPreviousData,
    staleTime: "static",
  });
  const { rows, fresh } = useMemo(() => merged(list.data ?? [], head.data?.items ?? []), [list.data, head.data]);
  const { error, isFetching, refetch } = list;
  if (rows.length === 0 && (list.data === undefined || list.isPlaceholderData)) {
    return <Loaded result={{ data: undefined, error, isFetching, refetch }}>{() => null}</Loaded>;
  }
  // The runs of a chain are its own list: the chain is no filter that the person chose.
  const isFiltered = Object.entries(query).some(
    ([name, value]) => value !== undefined && !(isOfOneChain && name === "chainId"),
  );
  return (
    <div className={styles.list}>
      {fresh > 0 && (
        <Button kind="quiet" onPress={() => setGeneration(generation + 1)}>
          {shared.newItems(fresh)}
        </Button>
      )}
      <DataList
        label={text.runs}
        rows={rows}
        {...(head.data && { total: Math.max(head.data.total, rows.length) })}
        columns={columnsOf(text, shared, isOfOneChain ?? false)}
        keyOf={({ runId }) => runId}
        onOpen={({ runId }) => void navigate({ to: "/chains/runs/$runId", params: { runId } })}
        onEnd={onEndOf(list)}
        empty={isFiltered ? shared.noMatch : text.noRuns}
        fill
      />
    </div>
  );
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
      width: "110px",
      cell: ({ status }) => <StateMark state={RUN_STATES[status]} />,
    },
    ...(isOfOneChain
      ? []
      : [{ name: "chain", title: text.chain, width: "minmax(90px, 2fr)", cell: ({ jobName }: Run) => jobName }]),
    {
      name: "opTime",
      title: text.opTime,
      width: "100px",
      cell: ({ runId, opTime }) => (
        <Link to="/chains/runs/$runId" params={{ runId }}>
          {opTime ?? runId.slice(0, 8)}
        </Link>
      ),
    },
    {
      name: "reason",
      title: shared.reason,
      width: "minmax(100px, 4fr)",
      wideOnly: true,
      cell: ({ reason }) => <span title={reason ?? undefined}>{reason}</span>,
    },
    {
      name: "trigger",
      title: text.trigger,
      width: "minmax(110px, 1fr)",
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
    { name: "took", title: shared.duration, width: "80px", align: "end", cell: (run) => <Took of={run} /> },
  ];
}

function merged(loaded: readonly Run[], head: readonly Run[]): { rows: readonly Run[]; fresh: number } {
  if (loaded.length === 0) return { rows: head, fresh: 0 };
  const newest = new Map(head.map((run) => [run.runId, run]));
  const rows = loaded.map((run) => newest.get(run.runId) ?? run);
  const known = new Set(loaded.map(({ runId }) => runId));
  const first = loaded[0]?.createdAt ?? "";
  return { rows, fresh: head.filter(({ runId, createdAt }) => !known.has(runId) && createdAt >= first).length };
}

export function Trigger({ run: { trigger, triggeredBy } }: { run: Run }) {
  const text = useWords(chainWords);
  const names: Readonly<Record<string, string>> = {
    api: text.api,
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

/** It counts on while something runs. */
export function Took({ of }: { of: { startedAt: string | null; endedAt: string | null } }) {
  if (of.startedAt === null) return null;
  return of.endedAt === null ? <TookSoFar startedAt={of.startedAt} /> : durationText(tookMs(of, 0) ?? 0);
}

function TookSoFar({ startedAt }: { startedAt: string }) {
  return durationText(useNow() - Date.parse(startedAt));
}
