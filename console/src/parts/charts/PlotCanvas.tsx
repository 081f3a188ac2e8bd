/** The canvas of a plot, drawn by uPlot. A file of its own, so that pages without a plot do not load the library. */
import "uplot/dist/uPlot.min.css";
import { useEffect, useEffectEvent, useRef } from "react";
import uPlot from "uplot";
import { usePreference, zone, zoneName } from "../../app/preferences.ts";
import { useColours } from "./colours.ts";
import type { StyledLine } from "./Plot.tsx";

export interface PlotCanvasProps {
  x: readonly number[] | readonly string[];
  lines: readonly StyledLine[];
  height: number;
  syncKey?: string;
  range?: readonly [from: number, to: number] | undefined;
  axisPx?: number;
  /** Where the keyboard has moved the cursor. */
  keyed: { index: number } | undefined;
  numberText(value: number): string;
  onCursor(index: number | undefined): void;
  onPick?: ((index: number) => void) | undefined;
}

const TOKENS = [
  "accent",
  "waiting",
  "stopped",
  "success",
  "failed",
  "skipped",
  "running",
  "text-soft",
  "line",
  "ground",
] as const;
const AXIS_PX = 52;
const X_AXIS_PX = 26;
const LABEL_GAP_PX = 76;
const LABEL_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
/** Above this many points in view the marks would touch each other. */
const MARKED_POINTS_MAX = 60;
const DAY_MS = 86_400_000;

export default function PlotCanvas(props: PlotCanvasProps) {
  const { x, lines, height, syncKey, range, axisPx = AXIS_PX, keyed } = props;
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const colours = useColours(TOKENS);
  const timeZone = zoneName(usePreference(zone));
  const isTime = typeof x[0] === "number";
  const onCursor = useEffectEvent((index: number | undefined) => props.onCursor(index));
  const onPick = useEffectEvent((index: number) => props.onPick?.(index));
  const labelAt = useEffectEvent((index: number) => String(x[index] ?? ""));
  const numberText = useEffectEvent((value: number) => props.numberText(value));
  const dataNow = useEffectEvent(() => dataOf(x, lines));
  const rangeNow = useEffectEvent(() => rangeOf(x, range));
  // What the library cannot change in place; data and range it can.
  const shape = JSON.stringify(lines.map(({ name, colour, dash }) => [name, colour, dash]));

  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const axis = {
      stroke: colours["text-soft"],
      font: `11px ${getComputedStyle(element).fontFamily}`,
      grid: { stroke: colours.line, width: 1 },
      ticks: { show: false },
    };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height,
        ms: 1,
        tzDate: (time) => uPlot.tzDate(new Date(time), timeZone),
        // Half of the last label of a time axis; other axes are aligned with the columns of a heat map.
        padding: [8, isTime ? 20 : 0, 0, 0],
        legend: { show: false },
        scales: { x: { time: isTime, range: () => [...rangeNow()] } },
        axes: [
          {
            ...axis,
            size: X_AXIS_PX,
            space: LABEL_GAP_PX,
            grid: { show: false },
            ...(isTime
              ? { values: (_, splits, __, ___, step) => splits.map((time) => timeText(time, step, timeZone)) }
              : { incrs: LABEL_STEPS, values: (_, splits) => splits.map((index) => labelAt(index)) }),
          },
          { ...axis, size: axisPx, gap: 6, values: (_, splits) => splits.map((value) => numberText(value)) },
        ],
        cursor: {
          y: false,
          drag: { x: false, y: false, setScale: false },
          points: { size: 8, fill: colours.ground, width: 2 },
          ...(syncKey !== undefined && { sync: { key: syncKey, scales: ["x", null], setSeries: false } }),
        },
        series: [
          {},
          ...(JSON.parse(shape) as [string, StyledLine["colour"], number[]][]).map(([label, colour, dash]) => ({
            label,
            stroke: colours[colour],
            width: 2,
            dash,
            points: { show: (u: uPlot) => pointsInView(u) <= MARKED_POINTS_MAX, size: 6, fill: colours[colour] },
          })),
        ],
        hooks: { setCursor: [({ cursor: { idx } }) => onCursor(idx ?? undefined)] },
      },
      dataNow(),
      element,
    );
    plot.current = made;
    const click = () => {
      if (typeof made.cursor.idx === "number") onPick(made.cursor.idx);
    };
    made.over.addEventListener("click", click);
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.current = undefined;
      made.destroy();
    };
  }, [colours, timeZone, isTime, shape, height, axisPx, syncKey]);

  useEffect(() => {
    plot.current?.setData(dataOf(x, lines));
  }, [x, lines]);

  const [from, to] = rangeOf(x, range);
  useEffect(() => {
    plot.current?.setScale("x", { min: from, max: to });
  }, [from, to]);

  useEffect(() => {
    const made = plot.current;
    if (!made || !keyed) return;
    const left = made.valToPos(made.data[0][keyed.index] ?? 0, "x");
    const { clientWidth: width, clientHeight } = made.over;
    made.setCursor({ left, top: clientHeight / 2 }, true);
    if (syncKey !== undefined)
      uPlot.sync(syncKey).pub("mousemove", made, left, clientHeight / 2, width, clientHeight, keyed.index);
  }, [keyed, syncKey]);

  return <div ref={holder} />;
}

function dataOf(x: PlotCanvasProps["x"], lines: readonly StyledLine[]): uPlot.AlignedData {
  const places = x.map((value, index) => (typeof value === "number" ? value : index));
  return [places, ...lines.map(({ values }) => [...values])];
}

/** Labels have half a place to each side, as the columns of a heat map do. */
function rangeOf(x: PlotCanvasProps["x"], range: PlotCanvasProps["range"]): readonly [number, number] {
  if (range) return range;
  const [first] = x;
  const last = x.at(-1);
  if (typeof first === "number" && typeof last === "number")
    return first === last ? [first - 1, last + 1] : [first, last];
  return [-0.5, x.length - 0.5];
}

function pointsInView({ data, scales }: uPlot): number {
  const { min = 0, max = 0 } = scales["x"] ?? {};
  const places = data[0];
  const span = (places.at(-1) ?? 0) - (places[0] ?? 0);
  return span === 0 ? places.length : (places.length * (max - min)) / span;
}

function timeText(time: number, step: number, timeZone: string): string {
  const whole = new Intl.DateTimeFormat("sv-SE", {
    timeZone,
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  });
  const part = Object.fromEntries(whole.formatToParts(time).map(({ type, value }) => [type, value]));
  if (step >= DAY_MS) return `${part["month"]}-${part["day"]}`;
  const clock = `${part["hour"]}:${part["minute"]}`;
  if (step < 60_000) return `${clock}:${part["second"]}`;
  return clock === "00:00" ? `${part["month"]}-${part["day"]}` : clock;
}
