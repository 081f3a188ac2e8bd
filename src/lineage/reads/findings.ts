/**
 * The nodes and edges that a walk has found, within its limits. The first limit that is reached ends the walk and is
 * reported.
 */

export type Direction = "up" | "down";
export type CutReason = "NODES" | "EDGES" | "TIME";

/** Always from where data comes to where it goes, whichever way the graph keeps it. */
export interface Link {
  from: string;
  to: string;
  kind: string;
  /** The name of the column by which a metric depends on a table. */
  via?: string;
  transformations?: readonly string[];
}

export interface Limits {
  nodesMax: number;
  edgesMax: number;
  timeMs: number;
}

export interface Found {
  link: Link;
  reached: string;
}

export interface Findings {
  /** Distance from the start, by id, in the order in which they were found. */
  distances: ReadonlyMap<string, number>;
  links: Iterable<Link>;
  /** By id, the link over which it was found first. */
  foundBy: ReadonlyMap<string, Link>;
  /** Adds what `look` finds, as far as there is room, and returns what was not known in this direction. */
  gather(look: (limit: number) => Promise<Found[]>, how: Gathering): Promise<string[]>;
  /** Why the walk is to end, if it is. */
  cut(): CutReason | undefined;
}

export interface Gathering {
  direction: Direction;
  distance: number;
  /** Uses at most half of the room for nodes: a hub's statements shall leave some for the tables that they write. */
  half?: boolean;
}

/** A first look asks for little more than there is room for nodes: what leads to known ones is seldom most of it. */
const FIRST_LOOK = { factor: 2, extra: 64 };
const NEXT_LOOK_FACTOR = 8;

export function createFindings(
  starts: readonly string[],
  { nodesMax, edgesMax, timeMs }: Limits,
  now: () => number,
): Findings {
  const distances = new Map(starts.map((id) => [id, 0]));
  const links = new Map<string, Link>();
  const foundBy = new Map<string, Link>();
  const seen = { up: new Set(starts), down: new Set(starts) };
  const deadline = now() + timeMs;
  let cut: CutReason | undefined;

  async function lookFor(nodesRoom: number, look: (limit: number) => Promise<Found[]>): Promise<Found[]> {
    const most = edgesMax - links.size + 1; // One more than there is room for shows that there is no room.
    for (let limit = nodesRoom * FIRST_LOOK.factor + FIRST_LOOK.extra; ; limit *= NEXT_LOOK_FACTOR) {
      const found = await look(Math.min(limit, most));
      if (limit >= most || found.length < limit) return found;
      const unknown = new Set(found.flatMap(({ reached }) => (distances.has(reached) ? [] : [reached])));
      if (unknown.size > nodesRoom) return found;
    }
  }

  return {
    distances,
    links: { [Symbol.iterator]: () => links.values() },
    foundBy,
    async gather(look, { direction, distance, half = false }) {
      const room = nodesMax - distances.size;
      const nodesRoom = half ? Math.ceil(room / 2) : room;
      const nodesEnd = distances.size + nodesRoom;
      const fresh: string[] = [];
      for (const { link, reached } of await lookFor(nodesRoom, look)) {
        const key = `${link.from} ${link.kind} ${link.to} ${link.via ?? ""}`;
        if (!links.has(key) && links.size >= edgesMax) {
          cut ??= "EDGES";
          break;
        }
        if (!distances.has(reached)) {
          if (distances.size >= nodesEnd) {
            cut ??= "NODES";
            continue;
          }
          distances.set(reached, distance);
          foundBy.set(reached, link);
        }
        links.set(key, link);
        if (!seen[direction].has(reached)) {
          seen[direction].add(reached);
          fresh.push(reached);
        }
      }
      return fresh;
    },
    cut() {
      if (now() > deadline) cut ??= "TIME";
      return cut;
    },
  };
}
