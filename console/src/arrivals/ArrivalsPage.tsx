/** Readiness: tables or models by opTime, why for each cell, backfill of a selection, and the values of KPIs below. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { onEndOf, useLiveList } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { HeatMap } from "../parts/charts/HeatMap.tsx";
import type { HeatRow } from "../parts/charts/heat-map.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { Tabs } from "../parts/controls/Tabs.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { Empty, Loaded, Page, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type CellsReply, paths } from "./api.ts";
import styles from "./arrivals.module.css";
import { BackfillDrawer } from "./BackfillDrawer.tsx";
import { COLUMNS, earlierThan, laterThan, withColumns, zoomedTo } from "./columns.ts";
import { KpiPlots } from "./KpiPlots.tsx";
import type { ArrivalsSearch } from "./routes.ts";
import { useLooks, withGaps } from "./states.ts";
import { TableDrawer } from "./TableDrawer.tsx";
import { WhyDrawer } from "./WhyDrawer.tsx";
import { arrivals } from "./words.ts";

const ROWS_PER_REQUEST = 200;
const WATCHES = [{ kind: "arrival" }, { kind: "model" }] as const;

export function ArrivalsPage() {
  const text = useWords(arrivals);
  const search: ArrivalsSearch = useSearch({ strict: false });
  const by = search.tab === "models" ? "model" : "table";
  return (
    <Page title={text.title} actions={<Link to="/arrivals/deliveries">{text.deliveries}</Link>}>
      <Tabs
        label={text.views}
        current={by === "model" ? "models" : "tables"}
        tabs={[
          { name: "tables", title: text.tables },
          { name: "models", title: text.models },
        ]}
      />
      <Cells by={by} search={search} />
    </Page>
  );
}

type By = "table" | "model";

function Cells({ by, search }: { by: By; search: ArrivalsSearch }) {
  const text = useWords(arrivals);
  const navigate = useNavigate();
  // The way back from a zoom leads to the map that was zoomed.
  const set = (change: Partial<ArrivalsSearch>, isZoom = false) =>
    void navigate({
      to: "/arrivals",
      search: { ...search, ...change },
      replace: !isZoom && isInPlace(search, change, "row"),
    });
  const { grain, from, to, last, q } = search;
  const result = useLiveList<CellsReply>(
    (after) => paths.cells({ by, grain, from, to, last, q, after, limit: ROWS_PER_REQUEST }),
    ({ next }) => next,
    WATCHES,
    { atMostEveryMs: 2_000 },
  );
  const shownGrain = grain ?? result.data?.[0]?.grain ?? "name";
  return (
    <>
      <div className={styles.bar}>
        <Filter label={text.findRow} value={q ?? ""} onChange={(next) => set({ q: next === "" ? undefined : next })} />
        <Select
          label={text.grain}
          value={shownGrain}
          options={[
            ["hour", text.hour],
            ["day", text.day],
            ["month", text.month],
            ["name", text.named],
          ]}
          onChange={(next) => set({ grain: next, from: undefined, to: undefined, at: undefined, until: undefined })}
        />
        <ColumnRange shown={result.data?.[0]} search={search} set={set} />
      </div>
      <Loaded result={result}>
        {(pages) => <Readiness by={by} pages={pages} search={search} set={set} onEnd={onEndOf(result)} />}
      </Loaded>
    </>
  );
}

interface ColumnRangeProps {
  shown: CellsReply | undefined;
  search: ArrivalsSearch;
  set(change: Partial<ArrivalsSearch>): void;
}

/** How many opTimes the map shows, and which: the newest, or others. */
function ColumnRange({ shown, search, set }: ColumnRangeProps) {
  const text = useWords(arrivals);
  const { number } = useFormats();
  const columns = search.last ?? COLUMNS[0];
  const opTimes = shown?.opTimes ?? [];
  const earlier = shown && earlierThan(shown, search);
  const later = shown && laterThan(shown, search);
  return (
    <>
      <Select
        label={text.columns}
        value={String(columns)}
        options={[...new Set([...COLUMNS, columns])].map((one) => [String(one), number(one)])}
        onChange={(next) => set(withColumns(Number(next), opTimes, search))}
      />
      <span className={styles.pair}>
        <Button isDisabled={!earlier} onPress={() => earlier && set(earlier)}>
          {text.earlier}
        </Button>
        <span>
          {opTimes[0]} – {opTimes.at(-1)}
        </span>
        <Button isDisabled={!later} onPress={() => later && set(later)}>
          {text.later}
        </Button>
        <Button
          isDisabled={search.from === undefined && search.to === undefined}
          onPress={() => set({ from: undefined, to: undefined, last: undefined })}
        >
          {text.newest}
        </Button>
      </span>
    </>
  );
}

interface ReadinessProps {
  by: By;
  pages: readonly CellsReply[];
  search: ArrivalsSearch;
  set(change: Partial<ArrivalsSearch>, isZoom?: boolean): void;
  onEnd: (() => void) | undefined;
}

function Readiness({ by, pages, search, set, onEnd }: ReadinessProps) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const looks = useLooks(by);
  const [view, setView] = useState<{ from: number; to: number; labelPx: number }>();
  const opTimes = useMemo(() => pages[0]?.opTimes ?? [], [pages]);
  const rows = useMemo(
    () =>
      pages.flatMap(({ rows: some }) =>
        some.map(({ name, cells }): HeatRow => ({ name, codes: by === "table" ? withGaps(cells) : cells })),
      ),
    [pages, by],
  );
  const row = rows.findIndex(({ name }) => name === search.row);
  const column = opTimes.indexOf(search.at ?? "");
  const last = opTimes.indexOf(search.until ?? "");
  const isSelection = row >= 0 && column >= 0 && last >= 0;
  const close = () => set({ row: undefined, at: undefined, until: undefined });
  const codes = rows[row]?.codes ?? "";
  const plotted = by === "model" ? (search.row ?? rows[0]?.name) : undefined;

  const drawer =
    search.row === undefined || search.at === undefined ? undefined : by === "table" ? (
      <TableDrawer key={`${search.row} ${search.at}`} table={search.row} opTime={search.at} onClose={close} />
    ) : isSelection ? (
      <BackfillDrawer
        modelId={search.row}
        opTimes={opTimes
          .slice(column, last + 1)
          .map((opTime, index) => ({ opTime, code: codes[column + index] ?? "" }))}
        onClose={close}
      />
    ) : (
      <WhyDrawer key={`${search.row} ${search.at}`} modelId={search.row} opTime={search.at} onClose={close} />
    );
  if (rows.length === 0) {
    const clear = <Button onPress={() => set({ q: undefined })}>{shared.clearFilter}</Button>;
    // A table that only chains wait for has no row, but a drawer.
    return (
      <Split drawer={drawer}>
        {search.q === undefined ? (
          <Empty>{by === "table" ? text.noTables : text.noModels}</Empty>
        ) : (
          <Empty action={clear}>{shared.noMatch}</Empty>
        )}
      </Split>
    );
  }
  return (
    <Split drawer={drawer}>
      <Panel>
        <HeatMap
          label={by === "table" ? text.tableMap : text.modelMap}
          rows={rows}
          columns={opTimes}
          looks={looks}
          rowHeading={({ name }) =>
            by === "model" ? (
              <Link to="/arrivals/models/$modelId" params={{ modelId: name }} title={name}>
                {name}
              </Link>
            ) : (
              <span title={name}>{name}</span>
            )
          }
          open={row >= 0 && column >= 0 && !isSelection ? { row, column } : undefined}
          selection={isSelection ? { row, from: column, to: last } : undefined}
          onOpen={(place) => set({ row: rows[place.row]?.name, at: opTimes[place.column], until: undefined })}
          onSelect={
            by === "model"
              ? (span) => set({ row: rows[span.row]?.name, at: opTimes[span.from], until: opTimes[span.to] })
              : undefined
          }
          onZoom={(first, end) => set(zoomedTo(opTimes, first, end), true)}
          onEnd={onEnd}
          onView={setView}
        />
        <p className={styles.legend}>
          {looks
            .filter(({ state }) => state !== "none")
            .map(({ code, state, word, glyph }) => (
              <StateMark key={code} state={state === "none" ? "skipped" : state} glyph={glyph} label={word} />
            ))}
        </p>
      </Panel>
      {plotted !== undefined && (
        <Panel title={text.valuesOf(plotted)}>
          <KpiPlots
            of={{ modelId: plotted }}
            opTimes={opTimes}
            view={view}
            onPick={(modelId, opTime) => set({ row: modelId, at: opTime, until: undefined })}
          />
        </Panel>
      )}
    </Split>
  );
}
