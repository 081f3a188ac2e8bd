/**
 * Series over time or over opTimes. The canvas is loaded when the first plot is shown; around it are what a canvas lacks: a name,
 * the values under the cursor as text, a cursor for the keyboard, and the same data as a table.
 */
import { type KeyboardEvent, lazy, Suspense, useId, useMemo, useState } from "react";
import { useLanguage, useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import { DataList } from "../page/DataList.tsx";
import { Empty } from "../page/Page.tsx";
import { useFormats } from "../times/time.ts";
import { chart } from "./chart-words.ts";
import styles from "./Plot.module.css";
import type { PlotCanvasProps } from "./PlotCanvas.tsx";

const PlotCanvas = lazy(() => import("./PlotCanvas.tsx"));

export interface Line {
  name: string;
  /** One for each place of `x`; null is a gap. */
  values: readonly (number | null)[];
  /** A token of tokens.css without `--`; otherwise one that no other line of the plot has. */
  colour?: LineColour;
}

/** Not every kind of colour vision tells them apart, so lines have dashes too. */
const LINE_COLOURS = ["accent", "waiting", "stopped", "success", "failed", "skipped", "running"] as const;
export type LineColour = (typeof LINE_COLOURS)[number];
const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

export interface PlotProps {
  /** What is plotted; also the name of the figure. */
  label: string;
  /** Times in milliseconds, ascending; or labels, such as opTimes, at equal distances. */
  x: readonly number[] | readonly string[];
  xTitle: string;
  lines: readonly Line[];
  /** The text of a value with its unit. */
  valueText?: ((value: number) => string) | undefined;
  height?: number;
  /** Plots with the same key share one cursor. */
  syncKey?: string;
  /** The part that is shown: times, or places among the labels. Without it, everything. */
  range?: readonly [from: number, to: number] | undefined;
  /** The width of the axis of values, where it must align with what is above. */
  axisPx?: number;
  /** A point was clicked, or Enter pressed on it. */
  onPick?: ((index: number) => void) | undefined;
}

const HEIGHT_PX = 160;
const PAGE_POINTS = 10;

export function Plot({ label, x, xTitle, lines, valueText, height = HEIGHT_PX, onPick, ...rest }: PlotProps) {
  const text = useWords(chart);
  const heading = useId();
  const [at, setAt] = useState<number>();
  const [keyed, setKeyed] = useState<{ index: number }>();
  const [isTable, setTable] = useState(false);
  const { number, time } = useFormats();
  const shown = useMemo(() => lines.map(withStyle), [lines]);
  const textOf = valueText ?? number;
  const xText = (index: number) => {
    const value = x[index];
    return typeof value === "number" ? time(value) : (value ?? "");
  };
  const valueAt = (line: Line, index: number) => {
    const value = line.values[index];
    return value === null || value === undefined ? text.noValue : textOf(value);
  };
  // Without a cursor the newest values are shown.
  const newest = useMemo(() => newestWithValue(lines, x.length), [lines, x.length]);
  const index = at !== undefined && at < x.length ? at : newest;

  function onKey(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -PAGE_POINTS, PageDown: PAGE_POINTS };
    const by = event.key === "Home" ? -x.length : event.key === "End" ? x.length : steps[event.key];
    if (by !== undefined) {
      const next = Math.min(Math.max(index + by, 0), x.length - 1);
      setAt(next);
      setKeyed({ index: next });
    } else if (event.key === "Enter" && onPick && x.length > 0) onPick(index);
    else return;
    event.preventDefault();
  }

  return (
    <figure className={styles.plot} aria-labelledby={heading}>
      <figcaption className={styles.head}>
        <span id={heading} className={styles.title}>
          {label}
        </span>
        {x.length > 0 && (
          <span className={styles.legend}>
            <span>{xText(index)}</span>
            {shown.map((line) => (
              <span key={line.name} className={styles.entry}>
                <svg width="18" height="8" aria-hidden="true">
                  <line
                    x1="0"
                    x2="18"
                    y1="4"
                    y2="4"
                    strokeWidth="2"
                    stroke={`var(--${line.colour})`}
                    strokeDasharray={line.dash.join(" ")}
                  />
                </svg>
                {line.name} <b>{valueAt(line, index)}</b>
              </span>
            ))}
          </span>
        )}
        <Button kind="quiet" onPress={() => setTable(!isTable)}>
          {isTable ? text.asPlot : text.asTable}
        </Button>
      </figcaption>
      {x.length === 0 ? (
        <Empty>{text.noPoints}</Empty>
      ) : isTable ? (
        <PlotTable label={label} xTitle={xTitle} count={x.length} lines={lines} xText={xText} valueAt={valueAt} />
      ) : (
        <div
          role="slider"
          tabIndex={0}
          aria-label={`${label}. ${text.plotKeys}`}
          aria-valuemin={0}
          aria-valuemax={x.length - 1}
          aria-valuenow={index}
          aria-valuetext={`${xText(index)}: ${lines.map((line) => `${line.name} ${valueAt(line, index)}`).join(", ")}`}
          className={styles.canvas}
          data-pick={onPick !== undefined || undefined}
          style={{ height }}
          onKeyDown={onKey}
        >
          <Suspense fallback={null}>
            <Canvas
              {...rest}
              valueText={valueText}
              x={x}
              lines={shown}
              height={height}
              keyed={keyed}
              onCursor={setAt}
              onPick={onPick}
            />
          </Suspense>
        </div>
      )}
    </figure>
  );
}

/** The texts of axes depend on the language. */
function Canvas({ valueText, ...props }: Omit<PlotCanvasProps, "numberText"> & Pick<PlotProps, "valueText">) {
  const language = useLanguage();
  const numberText = useMemo(() => {
    const format = new Intl.NumberFormat(language === "zh" ? "zh-CN" : "en", {
      notation: "compact",
      maximumFractionDigits: 2,
    });
    return (value: number) => format.format(value);
  }, [language]);
  return <PlotCanvas {...props} numberText={valueText ?? numberText} />;
}

/** The axis may go on after the values: the last place without any says nothing. */
function newestWithValue(lines: readonly Pick<Line, "values">[], length: number): number {
  const ends = lines.map(({ values }) => values.findLastIndex((value) => value !== null));
  const newest = Math.max(-1, ...ends);
  return newest < 0 ? length - 1 : newest;
}

export interface StyledLine extends Line {
  colour: LineColour;
  dash: readonly number[];
}

function withStyle(line: Line, index: number): StyledLine {
  const colour = line.colour ?? LINE_COLOURS[index % LINE_COLOURS.length] ?? "accent";
  return { ...line, colour, dash: DASHES[index % DASHES.length] ?? [] };
}

interface PlotTableProps {
  label: string;
  xTitle: string;
  count: number;
  lines: readonly Line[];
  xText(index: number): string;
  valueAt(line: Line, index: number): string;
}

/** The newest first, as in all lists. */
function PlotTable({ label, xTitle, count, lines, xText, valueAt }: PlotTableProps) {
  const rows = useMemo(() => Array.from({ length: count }, (_, index) => count - 1 - index), [count]);
  return (
    <DataList
      label={label}
      rows={rows}
      keyOf={String}
      columns={[
        { name: "x", title: xTitle, width: "minmax(120px, 200px)", cell: xText },
        ...lines.map((line) => ({
          name: line.name,
          title: line.name,
          width: "minmax(90px, 1fr)",
          align: "end" as const,
          cell: (index: number) => valueAt(line, index),
        })),
      ]}
    />
  );
}
