/** Where the graph stands in its window: all of it at first if that can be read, and then wherever the person has moved it. */
import { useReactFlow, useStore } from "@xyflow/react";
import { useEffect, useEffectEvent, useRef } from "react";
import type { Drawn } from "./drawn.ts";
import type { Point } from "./layers.ts";
import { NODE_HEIGHT, NODE_WIDTH } from "./model.ts";

const MARGIN_PX = 24;
/** Titles can hardly be read below it. */
const READABLE_ZOOM = 0.7;

interface Size {
  width: number;
  height: number;
}

/** `anchor` is the node that stays in its place when the graph changes. */
export function useView(drawn: Drawn | undefined, anchor: string | undefined): void {
  const flow = useReactFlow();
  const width = useStore((store) => store.width);
  const height = useStore((store) => store.height);
  const last = useRef<Drawn>(undefined);

  const move = useEffectEvent((next: Drawn) => {
    const before = last.current;
    last.current = next;
    if (!before) return void flow.setViewport(firstView(next, anchor, { width, height }));
    const place = (one: Drawn) => (anchor === undefined ? undefined : one.layout.positions.get(anchor));
    const from = place(before);
    const to = place(next);
    if (!from || !to) return;
    const { x, y, zoom } = flow.getViewport();
    void flow.setViewport({ x: x + (from.x - to.x) * zoom, y: y + (from.y - to.y) * zoom, zoom });
  });
  const isMeasured = width > 0 && height > 0;
  useEffect(() => {
    if (drawn && isMeasured && drawn !== last.current) move(drawn);
  }, [drawn, isMeasured]);

  const reveal = useEffectEvent((id: string, window: Size) => {
    const at = last.current?.layout.positions.get(id);
    if (!at) return;
    const { x, y, zoom } = flow.getViewport();
    const left = at.x * zoom + x;
    const top = at.y * zoom + y;
    const isInside =
      left >= 0 && top >= 0 && left + NODE_WIDTH * zoom <= window.width && top + NODE_HEIGHT * zoom <= window.height;
    if (!isInside) void flow.setCenter(at.x + NODE_WIDTH / 2, at.y + NODE_HEIGHT / 2, { zoom });
  });
  // Beside a drawer the window becomes smaller.
  useEffect(() => {
    if (anchor !== undefined && isMeasured) reveal(anchor, { width, height });
  }, [anchor, isMeasured, width, height]);
}

function firstView(
  { layout }: Drawn,
  anchor: string | undefined,
  window: Size,
): { x: number; y: number; zoom: number } {
  const points = [...layout.positions.values()];
  const left = Math.min(...points.map(({ x }) => x));
  const top = Math.min(...points.map(({ y }) => y));
  const right = Math.max(...points.map(({ x }) => x + NODE_WIDTH));
  const bottom = Math.max(...points.map(({ y }) => y + NODE_HEIGHT));
  const room = { width: window.width - 2 * MARGIN_PX, height: window.height - 2 * MARGIN_PX };
  const zoom = Math.min(1, room.width / (right - left), room.height / (bottom - top));
  if (zoom >= READABLE_ZOOM) return centred({ x: (left + right) / 2, y: (top + bottom) / 2 }, zoom, window);
  const at = anchor === undefined ? undefined : layout.positions.get(anchor);
  // What it begins with is at the left.
  const [first = { x: 0, y: 0 }] = points.toSorted((one, other) => one.x - other.x);
  const middle = at ?? first;
  return centred(
    {
      x: filling(middle.x + NODE_WIDTH / 2, left, right, window.width / READABLE_ZOOM),
      y: filling(middle.y + NODE_HEIGHT / 2, top, bottom, window.height / READABLE_ZOOM),
    },
    READABLE_ZOOM,
    window,
  );
}

/** The middle of a window that has no empty half: beyond an end of the graph it shows a margin. */
function filling(middle: number, from: number, to: number, room: number): number {
  const margin = MARGIN_PX / READABLE_ZOOM;
  if (to - from + 2 * margin <= room) return (from + to) / 2;
  return Math.min(Math.max(middle, from - margin + room / 2), to + margin - room / 2);
}

function centred({ x, y }: Point, zoom: number, window: Size) {
  return { x: window.width / 2 - x * zoom, y: window.height / 2 - y * zoom, zoom };
}
