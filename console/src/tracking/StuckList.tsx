/** What is stuck and why, and the retry of all that match. */
import { onEndOf, useLiveList } from "../api/live.ts";
import { Select } from "../parts/controls/Select.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, REASONS, type StuckPage, type StuckShard } from "./api.ts";
import { Filters } from "./Filters.tsx";
import { RetryAll } from "./RetryAll.tsx";
import { useOpenShard } from "./ShardDrawer.tsx";
import styles from "./tracking.module.css";
import { useClearFilters, useTrackingSearch } from "./use-search.ts";
import { tracking } from "./words.ts";

const PAGE = 200;
/** Leases expire and shards become overdue without any change that would be reported. */
const PACE = { atLeastEveryMs: 30_000 };

export function StuckList() {
  const text = useWords(tracking);
  const shared = useWords(common);
  const [{ stage, reason, q, file, shard }, set] = useTrackingSearch();
  const result = useLiveList<StuckPage>(
    (after) => paths.stuck({ stage, reason, q, after, limit: PAGE }),
    ({ next }) => next,
    [{ kind: "file" }],
    PACE,
  );
  const clear = useClearFilters(["stage", "reason", "q"]);
  return (
    <>
      <Filters>
        <Select
          label={shared.reason}
          value={reason ?? ""}
          options={[["", text.anyReason], ...REASONS.map((one) => [one, text[`reason_${one}`]] as const)]}
          onChange={(next) => set({ reason: next === "" ? undefined : next })}
        />
        <span className={styles.end}>
          <RetryAll of={{ stage, reason, q }} label={text.retryAll} />
        </span>
      </Filters>
      <Split drawer={useOpenShard()}>
        <Panel>
          <Loaded result={result}>
            {(pages) => (
              <DataList
                label={text.stuck}
                rows={pages.flatMap(({ items }) => items)}
                keyOf={keyOf}
                live={result.live}
                selected={selectedIn(pages, file, shard)}
                onOpen={(one) => set({ file: one.filename, shard: one.shard })}
                onEnd={onEndOf(result)}
                empty={text.noStuck}
                {...(clear && { onClear: clear })}
                columns={[
                  {
                    name: "reason",
                    title: shared.state,
                    width: "minmax(124px, 2.2fr)",
                    cell: (one) => (
                      <StateMark
                        state={one.reason === "failed" ? "failed" : "stopped"}
                        label={text[`reason_${one.reason}`]}
                      />
                    ),
                  },
                  {
                    name: "file",
                    title: text.file,
                    width: "minmax(90px, 2fr)",
                    cell: ({ filename, shard: no }) => (
                      <span className={styles.fileName} title={filename}>
                        <bdi>
                          {filename}
                          <span className={styles.narrow}> · {no}</span>
                        </bdi>
                      </span>
                    ),
                  },
                  {
                    name: "shard",
                    title: text.shard,
                    width: "60px",
                    align: "end",
                    wideOnly: true,
                    cell: (one) => one.shard,
                  },
                  { name: "stage", title: text.stage, width: "110px", wideOnly: true, cell: (one) => one.stage },
                  {
                    name: "why",
                    title: shared.reason,
                    width: "minmax(90px, 3fr)",
                    cell: (one) => {
                      const why = (one.reason === "failed" && one.last_error) || text[`why_${one.reason}`];
                      return (
                        <span className={one.reason === "failed" ? styles.reason : undefined} title={why}>
                          {why}
                        </span>
                      );
                    },
                  },
                  {
                    name: "worker",
                    title: text.worker,
                    width: "minmax(70px, 1fr)",
                    wideOnly: true,
                    cell: ({ worker }) => <span title={worker}>{worker}</span>,
                  },
                  {
                    name: "since",
                    title: text.since,
                    width: "110px",
                    wideOnly: true,
                    cell: (one) => <Time at={one.leased_until ?? one.updated_at} relative />,
                  },
                ]}
              />
            )}
          </Loaded>
        </Panel>
      </Split>
    </>
  );
}

function keyOf({ filename, shard, stage }: StuckShard): string {
  return `${filename}/${shard}/${stage}`;
}

/** The drawer shows all stages of a shard, so the address names none: its first row is marked. */
function selectedIn(pages: readonly StuckPage[], file: string | undefined, shard: number | undefined) {
  const found = pages.flatMap(({ items }) => items).find((one) => one.filename === file && one.shard === shard);
  return found && keyOf(found);
}
