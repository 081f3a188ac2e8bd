/**
 * Rows and columns of states, such as models by opTime, newest at the right. A canvas draws the cells in view. Headings and the
 * focused cell are DOM elements on top, so that keyboards and screen readers find a grid. Above 400 columns, a cell groups several.
 */
import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useWords } from "../../words/words.ts";
import { chart } from "./chart-words.ts";
import { useColours } from "./colours.ts";
import styles from "./HeatMap.module.css";
import {
  columnsOf,
  HEAD_PX,
  type HeatRow,
  headingsOf,
  type Layout,
  type Look,
  layoutOf,
  lookOf,
  type Place,
  ROW_PX,
  revealing,
  type Span,
} from "./heat-map.ts";
import { draw, HEAT_TOKENS, spritesOf, type View, visibleOf } from "./heat-map-canvas.ts";

interface HeatMapProps {
  label: string;
  rows: readonly HeatRow[];
  /** Of all rows, where not all are loaded. */
  total?: number | undefined;
  columns: readonly string[];
  /** Sorted by urgency: of several columns in a cell the first one is shown. */
  looks: readonly Look[];
  rowHeading(row: HeatRow): ReactNode;
  /** The cell that is open beside the map. */
  open?: Place | undefined;
  selection?: Span | undefined;
  onOpen(place: Place): void;
  /** Without it no range can be selected. */
  onSelect?: ((span: Span) => void) | undefined;
  /** A cell of several columns was opened. */
  onZoom?: ((from: number, to: number) => void) | undefined;
  /** For glyphs of two characters. */
  cellPxMin?: number;
  /** The first column is in view from the start, instead of the newest. */
  startsLeft?: boolean;
  /** The end of the rows comes into view. */
  onEnd?: (() => void) | undefined;
  /** The columns in view, for what is drawn below. */
  onView?: ((view: { from: number; to: number; labelPx: number }) => void) | undefined;
}

const LABEL_PX = 208;
const LABEL_NARROW_PX = 116;
const NARROW_PX = 560;
const END_ROWS = 20;
const NOWHERE: View = { left: 0, top: 0, width: 0, height: 0, scale: 1 };

export function HeatMap(props: HeatMapProps) {
  const { rows, columns, looks, open, selection, onSelect, onEnd, onView } = props;
  const text = useWords(chart);
  const colours = useColours(HEAT_TOKENS);
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [view, setView] = useState<View>(NOWHERE);
  const [active, setActive] = useState<Place>();
  const [hovered, setHovered] = useState<Place>();
  const [dragged, setDragged] = useState<Span>();
  const press = useRef<Place>(undefined);
  /** The cell that is to have the focus once it is there. */
  const wanted = useRef<Place>(undefined);
  const followsNewest = useRef(true);
  const labelPx = view.width < NARROW_PX ? LABEL_NARROW_PX : LABEL_PX;
  const layout = layoutOf(columns.length, view.width - labelPx, props.cellPxMin);
  const { cellPx, group, count } = layout;
  const focused = clamp(
    active ?? open ?? { row: 0, column: props.startsLeft ? 0 : columns.length - 1 },
    rows.length,
    columns.length,
  );
  const shown = visibleOf(view, { rows, layout, labelPx });
  const marked = dragged ?? selection;
  const sprites = useMemo(() => spritesOf(looks, cellPx, colours, view.scale), [looks, cellPx, colours, view.scale]);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () =>
      setView({
        left: element.scrollLeft,
        top: element.scrollTop,
        width: element.clientWidth,
        height: element.clientHeight,
        scale: devicePixelRatio,
      });
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    let frame = 0;
    const scrolled = () => {
      followsNewest.current = element.scrollLeft + element.clientWidth >= element.scrollWidth - 1;
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(measure);
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      resized.disconnect();
      element.removeEventListener("scroll", scrolled);
    };
  }, []);

  function reveal(place: Place): void {
    const element = scroller.current;
    if (!element) return;
    const room = { width: element.clientWidth - labelPx, height: element.clientHeight - HEAD_PX };
    const { left, top } = revealing(place, layout, { left: element.scrollLeft, top: element.scrollTop }, room);
    element.scrollLeft = left;
    element.scrollTop = top;
    // Synchronously: before the scroll event the target row is not rendered, and the focus and the next key would be lost.
    setView((before) => ({ ...before, left: element.scrollLeft, top: element.scrollTop }));
  }

  // Starts at the newest column and follows new columns until the user scrolls away.
  const newest = columns.at(-1);
  const columnCount = columns.length; // More of them begin further back.
  const hasWidth = view.width > 0;
  const { startsLeft } = props;
  useLayoutEffect(() => {
    if (scroller.current && !startsLeft && newest !== undefined && columnCount > 0 && hasWidth && followsNewest.current)
      scroller.current.scrollLeft = scroller.current.scrollWidth;
  }, [newest, columnCount, hasWidth, startsLeft]);

  // The cell that is open stays in view when its drawer makes the map narrower, or rows come before it.
  const openRow = open?.row ?? selection?.row;
  const openColumn = open?.column ?? selection?.to;
  // Not on every render, which would undo manual scrolling.
  useLayoutEffect(() => {
    if (openRow === undefined || openColumn === undefined || view.width === 0) return;
    followsNewest.current = false;
    reveal({ row: openRow, column: openColumn });
    // oxlint-disable-next-line react/exhaustive-deps
  }, [openRow, openColumn, view.width]);

  useLayoutEffect(() => {
    if (!canvas.current || view.width === 0) return;
    const size = [Math.round(view.width * view.scale), Math.round(view.height * view.scale)] as const;
    if (canvas.current.width !== size[0]) canvas.current.width = size[0];
    if (canvas.current.height !== size[1]) canvas.current.height = size[1];
    const scene = { rows, looks, layout, labelPx, colours, sprites, open, selection: marked };
    draw(canvas.current, scene, view);
  });

  // After a key or a click, but not when scrolling brings the cell back into view.
  useEffect(() => {
    const cell = scroller.current?.querySelector<HTMLElement>('[role="gridcell"]');
    if (!cell || wanted.current?.row !== focused.row || wanted.current.column !== focused.column) return;
    wanted.current = undefined;
    cell.focus({ preventScroll: true });
  });

  const lastRow = shown.rows[1];
  useEffect(() => {
    if (onEnd && rows.length > 0 && lastRow >= rows.length - END_ROWS) onEnd();
  }, [lastRow, rows.length, onEnd]);
  const viewFrom = (view.left / cellPx) * group - 0.5;
  const viewTo = ((view.left + view.width - labelPx) / cellPx) * group - 0.5;
  useEffect(() => {
    if (hasWidth) onView?.({ from: viewFrom, to: viewTo, labelPx });
  }, [hasWidth, viewFrom, viewTo, labelPx, onView]);

  function placeOf(event: PointerEvent): Place | undefined {
    const box = scroller.current?.getBoundingClientRect();
    if (!box) return undefined;
    const [x, y] = [event.clientX - box.left - labelPx, event.clientY - box.top - HEAD_PX];
    const cell = Math.floor((x + view.left) / cellPx);
    const row = Math.floor((y + view.top) / ROW_PX);
    if (x < 0 || y < 0 || row >= rows.length || cell >= count) return undefined;
    return { row, column: columnsOf(cell, layout, columns.length).to };
  }

  function openAt(place: Place): void {
    const { from, to } = columnsOf(Math.floor(place.column / group), layout, columns.length);
    if (from === to) props.onOpen(place);
    else props.onZoom?.(from, to);
  }

  function spanTo({ column }: Place, from: Place): Span {
    return { row: from.row, from: Math.min(from.column, column), to: Math.max(from.column, column) };
  }

  function onUp(event: PointerEvent): void {
    const place = placeOf(event);
    const from = press.current;
    press.current = undefined;
    setDragged(undefined);
    if (!place || !from) return;
    if (dragged && onSelect) onSelect(dragged);
    else if (event.shiftKey && onSelect) onSelect(spanTo(place, focused));
    else {
      wanted.current = place;
      setActive(place);
      openAt(place);
    }
  }

  function onMove(event: PointerEvent): void {
    const place = placeOf(event);
    if (place?.row !== hovered?.row || place?.column !== hovered?.column) setHovered(place);
    const from = press.current;
    if (!place || !from || !onSelect || group > 1 || event.pointerType !== "mouse") return;
    if (dragged || place.column !== from.column) setDragged(spanTo(place, from));
  }

  function moveTo(place: Place): void {
    const next = clamp(place, rows.length, columns.length);
    wanted.current = next;
    setActive(next);
    reveal(next);
  }

  function onKey(event: KeyboardEvent): void {
    const { row, column } = focused;
    const page = Math.max(1, Math.floor((view.height - HEAD_PX) / ROW_PX) - 1);
    const moves: Record<string, Place> = {
      ArrowLeft: { row, column: column - group },
      ArrowRight: { row, column: column + group },
      ArrowUp: { row: row - 1, column },
      ArrowDown: { row: row + 1, column },
      PageUp: { row: row - page, column },
      PageDown: { row: row + page, column },
      Home: { row, column: 0 },
      End: { row, column: columns.length - 1 },
    };
    const to = moves[event.key];
    if (to && event.shiftKey && onSelect && to.row === row) {
      const next = clamp(to, rows.length, columns.length);
      // The other end of the selection stays where it began.
      const anchor =
        marked?.row === row && marked.from !== marked.to ? (marked.from === column ? marked.to : marked.from) : column;
      onSelect(spanTo(next, { row, column: anchor }));
      moveTo(next);
    } else if (to) moveTo(to);
    else if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.role === "gridcell")
      openAt(focused);
    else return;
    event.preventDefault();
  }

  const hint = hovered && !dragged ? cellText(hovered) : undefined;
  function cellText({ row, column }: Place): string {
    const cell = Math.floor(column / group);
    const { from, to } = columnsOf(cell, layout, columns.length);
    const word = lookOf(rows[row]?.codes ?? "", cell, group, looks)?.word ?? "";
    const when = from === to ? columns[from] : `${columns[from]} – ${columns[to]} (${text.others(to - from + 1)})`;
    return `${rows[row]?.name} ${when}: ${word}`;
  }

  return (
    <div ref={scroller} className={styles.scroller} style={{ height: HEAD_PX + rows.length * ROW_PX + SCROLLBAR_PX }}>
      <div
        className={styles.space}
        style={{ width: labelPx + count * cellPx, height: HEAD_PX + rows.length * ROW_PX }}
        onPointerDown={(event) => {
          if (event.button === 0) press.current = placeOf(event);
        }}
        onPointerMove={onMove}
        onPointerUp={onUp}
        onPointerCancel={() => {
          press.current = undefined; // A finger has begun to scroll.
        }}
        onPointerLeave={() => {
          setHovered(undefined);
          setDragged(undefined);
          press.current = undefined;
        }}
      >
        <canvas
          ref={canvas}
          className={styles.canvas}
          style={{ width: view.width, height: view.height }}
          aria-hidden="true"
        />
        <div
          role="grid"
          aria-label={`${props.label}. ${text.heatMapKeys}`}
          aria-rowcount={(props.total ?? rows.length) + 1}
          aria-colcount={columns.length + 1}
          className={styles.grid}
          onKeyDown={onKey}
        >
          <Headings columns={columns} layout={layout} labelPx={labelPx} cells={shown.cells} left={view.left} />
          {rows.slice(shown.rows[0], shown.rows[1] + 1).map((row, index) => {
            const at = shown.rows[0] + index;
            return (
              <div
                role="row"
                key={row.name}
                aria-rowindex={at + 2}
                className={styles.row}
                style={{ top: HEAD_PX + at * ROW_PX }}
              >
                <span role="rowheader" className={styles.label} style={{ width: labelPx }}>
                  {props.rowHeading(row)}
                </span>
                {at === focused.row && (
                  <FocusedCell
                    key={`${focused.column}`}
                    column={focused.column}
                    left={labelPx + Math.floor(focused.column / group) * cellPx}
                    width={cellPx}
                    label={cellText(focused)}
                    isSelected={marked?.row === at && marked.from <= focused.column && focused.column <= marked.to}
                  />
                )}
              </div>
            );
          })}
        </div>
        {hint !== undefined && hovered && (
          <div
            className={styles.hint}
            style={{
              left: Math.min(labelPx + Math.floor(hovered.column / group) * cellPx, view.left + view.width - HINT_PX),
              top: hintTop(hovered.row * ROW_PX + HEAD_PX, view),
            }}
          >
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}

const SCROLLBAR_PX = 16;
const HINT_PX = 260;

/** Below the cell, or above it at the lower edge. */
function hintTop(y: number, { top, height }: View): number {
  return y + 2 * ROW_PX + 4 < top + height ? y + ROW_PX + 2 : y - ROW_PX - 2;
}

function clamp({ row, column }: Place, rows: number, columns: number): Place {
  return { row: Math.max(0, Math.min(row, rows - 1)), column: Math.max(0, Math.min(column, columns - 1)) };
}

const LEAD_PX = 3;

interface HeadingsProps {
  columns: readonly string[];
  layout: Layout;
  labelPx: number;
  cells: readonly [number, number];
  /** How far the cells are scrolled. */
  left: number;
}

function Headings({ columns, layout, labelPx, cells, left }: HeadingsProps) {
  return (
    <div role="row" aria-rowindex={1} className={styles.head} style={{ height: HEAD_PX }}>
      <span role="columnheader" className={styles.corner} style={{ width: labelPx }} />
      {headingsOf(columns, layout, cells).map(({ cell, lead, tail }) => (
        <span
          role="columnheader"
          key={cell}
          aria-colindex={cell * layout.group + 2}
          className={styles.heading}
          style={{ left: labelPx + cell * layout.cellPx, width: layout.cellPx }}
        >
          {/* Of a cell that is partly behind the names, the text stays in view. */}
          <span className={styles.lead} style={{ left: LEAD_PX + Math.max(0, left - cell * layout.cellPx) }}>
            {lead}
          </span>
          <span className={styles.tail}>{tail}</span>
        </span>
      ))}
    </div>
  );
}

interface FocusedCellProps {
  column: number;
  left: number;
  width: number;
  label: string;
  isSelected: boolean;
}

/** The focused cell, the only one in the DOM. Each position gets a new element, so that screen readers announce it. */
function FocusedCell({ column, left, width, label, isSelected }: FocusedCellProps) {
  return (
    <span
      role="gridcell"
      tabIndex={0}
      aria-colindex={column + 2}
      aria-label={label}
      aria-selected={isSelected}
      className={styles.cell}
      style={{ left, width, height: ROW_PX }}
    />
  );
}
