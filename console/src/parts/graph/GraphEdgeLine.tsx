/** An edge: the bends that the layout found, with round corners, or a curve. Those of the selected node stand out. */
import { type EdgeProps, getBezierPath } from "@xyflow/react";
import { memo } from "react";
import { useIsSelected } from "./cards.ts";
import styles from "./Graph.module.css";
import type { Point } from "./layers.ts";

const CORNER_PX = 8;

export const GraphEdgeLine = memo(function GraphEdgeLine(props: EdgeProps) {
  const isFromSelected = useIsSelected(props.source);
  const isToSelected = useIsSelected(props.target);
  const { points, isFaded } = props.data as { points?: readonly Point[]; isFaded?: boolean };
  const path = points && points.length > 1 ? roundedPath(points) : getBezierPath(props)[0];
  return (
    <path
      d={path}
      className={styles.edge}
      data-selected={isFromSelected || isToSelected || undefined}
      data-faded={isFaded || undefined}
    />
  );
});

function roundedPath(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const parts = [`M${first.x},${first.y}`];
  rest.forEach((point, index) => {
    const before = points[index] as Point;
    const after = rest[index + 1];
    if (!after) return void parts.push(`L${point.x},${point.y}`);
    const start = towards(point, before);
    const end = towards(point, after);
    parts.push(`L${start.x},${start.y}Q${point.x},${point.y} ${end.x},${end.y}`);
  });
  return parts.join("");
}

/** A point at most a corner away from `from`, and at most half way to `to`. */
function towards(from: Point, to: Point): Point {
  const distance = Math.hypot(to.x - from.x, to.y - from.y);
  const share = distance === 0 ? 0 : Math.min(CORNER_PX / distance, 0.5);
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}
