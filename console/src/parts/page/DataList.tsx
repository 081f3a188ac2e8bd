/**
 * A virtualized list: rows of equal height, and only the rows in view are rendered. Rows are reached by `j`, `k` and the arrow keys and
 * opened by Enter or a click. The rows of a live list do not move while it is in use; new ones wait behind a button.
 */
import { useLocation } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import styles from "./DataList.module.css";
import { useHeldRows } from "./held-rows.ts";
import { LiveRegion } from "./LiveRegion.tsx";
import { Empty } from "./Page.tsx";

export interface Column<Row> {
  name: string;
  title: ReactNode;
  /** A width of CSS grid, such as `120px` or `minmax(160px, 2fr)`. */
  width: string;
  cell(row: Row): ReactNode;
  /** Hidden in a narrow list: below 640 px or, if a column has `isBelow`, when not all columns fit. */
  wideOnly?: boolean;
  /** In a narrow list, has a line of its own below the other cells of the row. */
  isBelow?: boolean;
  align?: "end";
}

interface DataListProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf(row: Row): string;
  /** The row that is open. */
  selected?: string | undefined;
  onOpen?(row: Row): void;
  /** Called when the end comes into view. */
  onEnd?: (() => void) | undefined;
  empty?: ReactNode;
  /** Clears the filters when no row matches. Omit it if there are no filters. */
  onClear?(): void;
  /** Of all rows, where it is known. */
  total?: number;
  /** Fills its container instead of growing. */
  fill?: boolean;
  /** The name of a live list. Other filters make another list with another name. */
  live?: string | undefined;
  /** Called when the rows in or near the viewport change. */
  onView?(rows: readonly Row[]): void;
  /** New rows to load on request, in addition to those held back while the list is in use. */
  more?: { count: number; onShow(): void };
}

const ROW_PX = 32;
/** With a line below. */
const TALL_ROW_PX = 52;
const NARROW_PX = 640;
const AHEAD = 12;
const GROWN_ROWS_MAX = 18;
/** Maximum number of rows passed to `onView`. */
const VIEW_ROWS = 25;

export function DataList<Row>(props: DataListProps<Row>) {
  const text = useWords(common);
  // When the first rows arrive, the list starts at the top.
  if (props.rows.length > 0) return <Rows {...props} />;
  const clear = props.onClear && <Button onPress={props.onClear}>{text.clearFilter}</Button>;
  return <Empty action={clear}>{clear ? text.noMatch : (props.empty ?? text.nothingHere)}</Empty>;
}

function Rows<Row>(props: DataListProps<Row>) {
  const search = useLocation({ select: ({ searchStr }) => searchStr });
  const { columns, keyOf, onOpen, onEnd, onView, selected, more } = props;
  const text = useWords(common);
  const scroller = useRef<HTMLDivElement>(null);
  const { rows, waiting, gone, release } = useHeldRows(props.live, props.rows, keyOf, scroller);
  const [active, setActive] = useState(0);
  const hasBelow = columns.some(({ isBelow }) => isBelow);
  // Only a list with `isBelow` turns narrow as soon as its columns do not fit. Others would lose their `wideOnly` columns, so
  // above 640 px they scroll sideways.
  const isNarrow = useIsNarrow(scroller, Math.max(NARROW_PX, hasBelow ? leastPxOf(columns) : 0));
  const rowPx = isNarrow && hasBelow ? TALL_ROW_PX : ROW_PX;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: AHEAD,
  });
  useLayoutEffect(() => virtual.measure(), [virtual, rowPx]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (onEnd && rows.length > 0 && last >= rows.length - AHEAD) onEnd();
  }, [last, rows.length, onEnd]);
  const viewFrom = Math.floor((items[0]?.index ?? 0) / VIEW_ROWS) * VIEW_ROWS;
  const viewTo = Math.ceil((last + 1) / VIEW_ROWS) * VIEW_ROWS;
  useEffect(() => onView?.(rows.slice(viewFrom, viewTo)), [rows, viewFrom, viewTo, onView]);

  function move(from: number, by: number): void {
    const next = Math.min(Math.max(from + by, 0), rows.length - 1);
    setActive(next);
    virtual.scrollToIndex(next);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-index="${next}"]`)?.focus());
  }
  function onKey(event: KeyboardEvent): void {
    const steps: Record<string, number> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
    const by = steps[event.key];
    const focused = focusedIndex(event.target);
    const row = rows[focused ?? -1];
    if (by !== undefined) move(focused ?? active, by);
    else if (event.key === "Home") move(0, 0);
    else if (event.key === "End") move(rows.length, 0);
    else if (event.key === "Enter" && row !== undefined) onOpen?.(row);
    else return;
    event.preventDefault();
  }

  const newRows = waiting + (more?.count ?? 0);
  function showNew(): void {
    release();
    if (more && more.count > 0) more.onShow();
    virtual.scrollToOffset(0);
    // The button goes, and it had the focus.
    move(0, 0);
  }

  const template = columns.map(({ width }) => width).join(" ");
  const narrow = columns
    .filter(({ wideOnly, isBelow }) => !wideOnly && !isBelow)
    .map(({ width }) => width)
    .join(" ");
  return (
    <div
      ref={scroller}
      className={styles.scroller}
      // Otherwise the router restores the scroll position of the list with other filters.
      data-scroll-restoration-id={`${props.label} ${search}`}
      style={
        {
          "--columns": template,
          "--columns-narrow": narrow,
          ...(!props.fill && { height: Math.min(rows.length, GROWN_ROWS_MAX) * rowPx + ROW_PX + 2 }),
        } as React.CSSProperties
      }
      data-fill={props.fill || undefined}
      data-narrow={isNarrow || undefined}
      onPointerLeave={({ currentTarget }) => {
        if (!currentTarget.matches(":has(:focus-visible)")) release();
      }}
      onBlur={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget) && !currentTarget.matches(":hover")) release();
      }}
    >
      <div className={styles.waiting}>
        {newRows > 0 && <Button onPress={showNew}>{text.newItems(newRows)}</Button>}
        <LiveRegion>{newRows > 0 ? text.newItems(newRows) : ""}</LiveRegion>
      </div>
      <div
        role="grid"
        aria-label={props.label}
        aria-rowcount={(props.total ?? rows.length) + 1}
        aria-colcount={columns.length}
        onKeyDown={onKey}
        className={styles.grid}
        style={{ height: virtual.getTotalSize() + ROW_PX }}
      >
        <div role="row" className={styles.head} aria-rowindex={1}>
          {columns.map(({ name, title, align, wideOnly, isBelow }) => (
            <span
              key={name}
              role="columnheader"
              className={styles.cell}
              data-align={align}
              data-wide={wideOnly}
              data-below={isBelow}
            >
              {title}
            </span>
          ))}
        </div>
        {items.map(({ index, start }) => {
          const row = rows[index] as Row;
          const key = keyOf(row);
          return (
            <div
              key={key}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={key === selected}
              data-index={index}
              data-open={onOpen !== undefined || undefined}
              data-gone={gone.has(key) || undefined}
              tabIndex={index === active ? 0 : -1}
              className={styles.row}
              style={{ transform: `translateY(${start + ROW_PX}px)` }}
              onClick={(event) => {
                setActive(index);
                // A link or a button in the row acts by itself, and selecting text is not a click.
                if ((event.target as Element).closest("a, button, input") || getSelection()?.toString()) return;
                onOpen?.(row);
              }}
            >
              {columns.map(({ name, cell, align, wideOnly, isBelow }, column) => (
                <span
                  key={name}
                  role="gridcell"
                  className={styles.cell}
                  data-align={align}
                  data-wide={wideOnly}
                  data-below={isBelow}
                >
                  {column === 0 && gone.has(key) && <span className="visually-hidden">{text.gone}</span>}
                  {cell(row)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function useIsNarrow(scroller: RefObject<HTMLDivElement | null>, upToPx: number): boolean {
  const [isNarrow, setNarrow] = useState(false);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => setNarrow(element.clientWidth <= upToPx);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller, upToPx]);
  return isNarrow;
}

const GAP_PX = 12;
/** What the columns take at least: `140px` of `140px` and of `minmax(140px, 2fr)`. */
function leastPxOf(columns: readonly { width: string }[]): number {
  return columns.reduce((sum, { width }) => sum + Number(/\d+(?=px)/.exec(width)?.[0] ?? 0) + GAP_PX, GAP_PX);
}

/** Of a row, not of a link or a button in it, which act by themselves. */
function focusedIndex(target: EventTarget): number | undefined {
  const index = target instanceof HTMLElement ? target.dataset["index"] : undefined;
  return index === undefined ? undefined : Number(index);
}
