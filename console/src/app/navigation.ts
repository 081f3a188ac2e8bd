/** The pages in the menu, and the letter that opens each after `g`. */
import type { IconName } from "../parts/controls/icons.tsx";

export const NAVIGATION = [
  { name: "overview", path: "/", letter: "o" },
  { name: "harvest", path: "/harvest", letter: "h" },
  { name: "tracking", path: "/tracking", letter: "t" },
  { name: "chains", path: "/chains", letter: "c" },
  { name: "arrivals", path: "/arrivals", letter: "a" },
  { name: "lineage", path: "/lineage", letter: "l" },
  { name: "admin", path: "/admin", letter: "d" },
] as const satisfies readonly { name: IconName; path: string; letter: string }[];
