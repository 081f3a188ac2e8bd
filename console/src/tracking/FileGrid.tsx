/** Files by shards, newest files first: each cell is the stage that the shard is in and its state there. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { onEndOf, useLiveList } from "../api/live.ts";
import { HeatMap } from "../parts/charts/HeatMap.tsx";
import { Button } from "../parts/controls/Button.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { Empty, Loaded, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type GridPage, paths, STAGES } from "./api.ts";
import { useOpenShard } from "./ShardDrawer.tsx";
import { useLooks } from "./states.ts";
import styles from "./tracking.module.css";
import { useClearFilters, useTrackingSearch } from "./use-search.ts";
import { tracking } from "./words.ts";

const FILES = 100;
const SHARDS = 100;
const CELL_PX_MIN = 27;
const NONE: readonly number[] = [];
/** A shard that is in a stage, not done with all of them. */
const NUMBERED = /[^*. ]/;

export function FileGrid({ filters }: { filters: ReactNode }) {
  const [{ stage, status, q, firstShard: from }] = useTrackingSearch();
  const result = useLiveList<GridPage>(
    (after) => paths.grid({ stage, status, q, from, after, limit: FILES, shards: SHARDS }),
    ({ next }) => next,
    [{ kind: "file" }],
  );
  return (
    <>
      {filters}
      <Split drawer={useOpenShard()}>
        <Panel>
          <Loaded result={result}>{(pages) => <Grid pages={pages} onEnd={onEndOf(result)} />}</Loaded>
        </Panel>
      </Split>
    </>
  );
}

function Grid({ pages, onEnd }: { pages: readonly GridPage[]; onEnd: (() => void) | undefined }) {
  const text = useWords(tracking);
  const shared = useWords(common);
  const looks = useLooks();
  const [{ firstShard: from = 0, file, shard }, set] = useTrackingSearch();
  const clear = useClearFilters(["stage", "status", "q"]);
  const shards = pages[0]?.shards ?? NONE;
  const later = pages[0]?.next_shard ?? null;
  const columns = useMemo(() => shards.map(String), [shards]);
  // A file that was registered meanwhile moves the others down; none is shown twice.
  const rows = useMemo(
    () => [
      ...new Map(
        pages.flatMap(({ items }) => items).map(({ filename, cells }) => [filename, { name: filename, codes: cells }]),
      ).values(),
    ],
    [pages],
  );
  if (rows.length === 0) {
    if (!clear) return <Empty>{text.noFiles}</Empty>;
    return <Empty action={<Button onPress={clear}>{shared.clearFilter}</Button>}>{shared.noMatch}</Empty>;
  }
  const row = rows.findIndex(({ name }) => name === file);
  const column = shards.indexOf(shard ?? -1);
  return (
    <>
      <HeatMap
        label={text.gridOf}
        rows={rows}
        columns={columns}
        looks={looks}
        startsLeft
        cellPxMin={CELL_PX_MIN}
        rowHeading={({ name }) => (
          <Link to="/tracking/files/$filename" params={{ filename: name }} className={styles.fileName} title={name}>
            <bdi>{name}</bdi>
          </Link>
        )}
        open={row < 0 || column < 0 ? undefined : { row, column }}
        onOpen={(place) => {
          if (rows[place.row]?.codes[place.column] !== ".")
            set({ file: rows[place.row]?.name, shard: shards[place.column] });
        }}
        onEnd={onEnd}
      />
      <div className={styles.legend}>
        <StateMark state="failed" label={text.failedLegend} />
        <StateMark state="running" label={text.startedLegend} />
        <StateMark state="waiting" label={text.waitsLegend} />
        <StateMark state="success" label={text.done} />
        {rows.some(({ codes }) => NUMBERED.test(codes)) && (
          <span>
            {text.stagesLegend} {STAGES.map((one, at) => `${at + 1} ${one}`).join(", ")}
          </span>
        )}
        {(from > 0 || later !== null) && (
          <span className={styles.end}>
            {text.shardRange(shards[0] ?? 0, shards.at(-1) ?? 0)}
            <Button
              isDisabled={from === 0}
              onPress={() => set({ firstShard: Math.max(0, from - SHARDS) || undefined })}
            >
              {text.earlierShards}
            </Button>
            <Button isDisabled={later === null} onPress={() => set({ firstShard: later ?? undefined })}>
              {text.laterShards}
            </Button>
          </span>
        )}
      </div>
    </>
  );
}
