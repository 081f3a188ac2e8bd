/** One file: every shard in every stage. */
import { Link, useNavigate } from "@tanstack/react-router";
import { onEndOf, useLiveList } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { shell } from "../app/words.ts";
import { Select } from "../parts/controls/Select.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded, Page, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { useWords } from "../words/words.ts";
import { paths, type Shard, type ShardPage, STAGES, STATUSES, statusIn } from "./api.ts";
import { RetryAll } from "./RetryAll.tsx";
import { type FileSearch, fileRoute } from "./routes.ts";
import { LeaseLeft, ShardDrawer } from "./ShardDrawer.tsx";
import { stateIn } from "./states.ts";
import styles from "./tracking.module.css";
import { tracking } from "./words.ts";

const PAGE = 500;

export function FilePage() {
  const text = useWords(tracking);
  const frame = useWords(shell);
  const { filename } = fileRoute.useParams();
  const search = fileRoute.useSearch();
  const { status, shard } = search;
  const navigate = useNavigate();
  const set = (change: FileSearch) =>
    void navigate({
      to: "/tracking/files/$filename",
      params: { filename },
      search: { ...search, ...change },
      replace: isInPlace(search, change, "shard"),
    });
  const result = useLiveList<ShardPage>(
    (from) => paths.shards(filename, { status, from, limit: PAGE }),
    ({ next }) => (next === null ? null : String(next)),
    [{ kind: "file", id: filename }],
  );
  return (
    <Page
      title={filename}
      aside={<Link to="/tracking">{frame.tracking}</Link>}
      actions={<RetryAll of={{ filename, reason: "failed" }} label={text.retryFailed} />}
    >
      <div className={styles.bar}>
        <Select
          label={text.status}
          value={status ?? ""}
          options={[["", text.anyStatus], ...STATUSES.map((one) => [one, text[`is_${one}`]] as const)]}
          onChange={(next) => set({ status: next === "" ? undefined : next })}
        />
      </div>
      <Split
        drawer={
          shard !== undefined && (
            <ShardDrawer key={shard} filename={filename} shard={shard} onClose={() => set({ shard: undefined })} />
          )
        }
      >
        <Panel>
          <Loaded result={result}>
            {(pages) => (
              <DataList
                label={text.shardsOf(filename)}
                rows={pages.flatMap(({ items }) => items)}
                keyOf={(one) => String(one.shard)}
                live={result.live}
                selected={shard === undefined ? undefined : String(shard)}
                onOpen={(one) => set({ shard: one.shard })}
                onEnd={onEndOf(result)}
                {...(status !== undefined && { onClear: () => set({ status: undefined }) })}
                columns={columnsOf(text, shard !== undefined)}
              />
            )}
          </Loaded>
        </Panel>
      </Split>
    </Page>
  );
}

/** The drawer shows the rest of the shard that is open, and leaves no room for it here. */
function columnsOf(text: (typeof tracking)["en"], isOpen: boolean): readonly Column<Shard>[] {
  const stages: readonly Column<Shard>[] = [
    { name: "shard", title: text.shard, width: "60px", align: "end", cell: (one) => one.shard },
    ...STAGES.map(
      (stage, at): Column<Shard> => ({
        name: stage,
        title: `${at + 1} ${stage}`,
        width: isOpen ? "minmax(60px, 1fr)" : "minmax(60px, 108px)",
        cell: (one) => {
          const state = stateIn(one, stage);
          const word = state === "skipped" ? text.notReached : text[`is_${statusIn(one, stage)}`];
          return (
            <>
              <StateMark state={state} label={word} compact />{" "}
              <span className={styles.word} aria-hidden="true">
                {word}
              </span>
            </>
          );
        },
      }),
    ),
  ];
  if (isOpen) return stages;
  return [
    ...stages,
    {
      name: "error",
      title: text.error,
      width: "minmax(120px, 3fr)",
      wideOnly: true,
      cell: ({ last_error: error }) => (
        <span className={styles.reason} title={error}>
          {error}
        </span>
      ),
    },
    {
      name: "worker",
      title: text.worker,
      width: "minmax(70px, 1fr)",
      wideOnly: true,
      cell: ({ worker }) => <span title={worker}>{worker}</span>,
    },
    { name: "lease", title: text.lease, width: "110px", wideOnly: true, cell: (one) => <LeaseLeft shard={one} /> },
    {
      name: "changed",
      title: text.changed,
      width: "110px",
      wideOnly: true,
      cell: ({ updated_at: at }) => <Time at={at} relative />,
    },
  ];
}
