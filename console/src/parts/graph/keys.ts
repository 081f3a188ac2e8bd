/** Where an arrow key leads: along the edges, or to the next node of the same layer. */
import type { Layout, Point } from "./layers.ts";
import type { Links } from "./model.ts";

/** Layers of elk are not aligned to the pixel. */
const SAME_LAYER_PX = 110;

export function nextByKey(key: string, id: string, links: Links, { positions }: Layout): string | undefined {
  const at = positions.get(id);
  if (!at) return undefined;
  switch (key) {
    case "ArrowRight":
      return nearest(at, links.after.get(id) ?? [], positions);
    case "ArrowLeft":
      return nearest(at, links.before.get(id) ?? [], positions);
    case "ArrowDown":
    case "ArrowUp": {
      const isBeyond = (y: number) => (key === "ArrowDown" ? y > at.y : y < at.y);
      const layer = [...positions].filter(([, { x, y }]) => Math.abs(x - at.x) < SAME_LAYER_PX && isBeyond(y));
      return nearest(
        at,
        layer.map(([other]) => other),
        positions,
      );
    }
    default:
      return undefined;
  }
}

function nearest(at: Point, ids: readonly string[], positions: Layout["positions"]): string | undefined {
  const distance = (id: string) => Math.abs((positions.get(id)?.y ?? 0) - at.y);
  return ids.toSorted((one, other) => distance(one) - distance(other))[0];
}
