/** Files with a bar for each stage: how many of the shards are done, started, waiting and failed there. */
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { onEndOf, pageAfter, useLiveList } from "../api/live.ts";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import type { State } from "../parts/states/state.ts";
import { Time } from "../parts/times/Time.tsx";
import { type Formats, useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import { type FilePage, type FileSummary, paths, STAGES, type Stage } from "./api.ts";
import { countsIn, partsOf } from "./stage-parts.ts";
import styles from "./tracking.module.css";
import { useClearFilters, useTrackingSearch } from "./use-search.ts";
import { tracking } from "./words.ts";

const PAGE = 100;

export function FileList({ filters }: { filters: ReactNode }) {
  const text = useWords(tracking);
  const formats = useFormats();
  const navigate = useNavigate();
  const [{ stage, status, q }] = useTrackingSearch();
  const result = useLiveList<FilePage>((page) => paths.files({ stage, status, q, page, size: PAGE }), pageAfter, [
    { kind: "file" },
  ]);
  const clear = useClearFilters(["stage", "status", "q"]);
  return (
    <>
      {filters}
      <Panel>
        <Loaded result={result}>
          {(pages) => (
            <DataList
              label={text.files}
              rows={[...new Map(pages.flatMap(({ items }) => items).map((one) => [one.filename, one])).values()]}
              total={pages[0]?.total ?? 0}
              keyOf={({ filename }) => filename}
              live={result.live}
              columns={columnsOf(text, formats)}
              onOpen={({ filename }) => void navigate({ to: "/tracking/files/$filename", params: { filename } })}
              onEnd={onEndOf(result)}
              empty={text.noFiles}
              {...(clear && { onClear: clear })}
            />
          )}
        </Loaded>
      </Panel>
    </>
  );
}

function columnsOf(text: (typeof tracking)["en"], formats: Formats): readonly Column<FileSummary>[] {
  return [
    {
      name: "file",
      title: text.file,
      width: "minmax(140px, 2fr)",
      cell: ({ filename }) => (
        <Link to="/tracking/files/$filename" params={{ filename }} title={filename}>
          {filename}
        </Link>
      ),
    },
    { name: "shards", title: text.shards, width: "60px", align: "end", cell: ({ shards }) => formats.number(shards) },
    ...STAGES.map(
      (stage, at): Column<FileSummary> => ({
        name: stage,
        title: `${at + 1} ${stage}`,
        width: "minmax(110px, 1fr)",
        wideOnly: true,
        cell: (file) => <StageBar file={file} stage={stage} formats={formats} />,
      }),
    ),
    {
      name: "changed",
      title: text.changed,
      width: "110px",
      cell: ({ updated_at: at }) => <Time at={at} relative />,
    },
  ];
}

function wordOf(state: State, text: (typeof tracking)["en"]): string {
  if (state === "success") return text.is_done;
  if (state === "running") return text.is_started;
  if (state === "failed") return text.is_failed;
  return state === "waiting" ? text.is_new : text.notReached;
}

/** The bar is for the eye; beside it stands what matters most in words. */
function StageBar({ file, stage, formats }: { file: FileSummary; stage: Stage; formats: Formats }) {
  const text = useWords(tracking);
  const counts = countsIn(file, stage);
  const parts = partsOf(file, stage);
  const label = parts.map(({ state, n }) => `${formats.number(n)} ${wordOf(state, text)}`).join(", ");
  const failed = counts.failed ?? 0;
  return (
    <span className={styles.stageCell} title={text.countsOf(stage, label)}>
      <span className={styles.segments} aria-hidden="true">
        {parts.map(({ state, n }) => (
          <i key={state} data-state={state} style={{ flex: n }} />
        ))}
      </span>
      <span className="visually-hidden">{label}</span>
      <span aria-hidden="true" className={failed > 0 ? styles.bad : styles.soft}>
        {failed > 0
          ? `✕ ${formats.number(failed)}`
          : `${formats.number(counts.done ?? 0)}/${formats.number(file.shards)}`}
      </span>
    </span>
  );
}
