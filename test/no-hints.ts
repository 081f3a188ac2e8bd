/** For a part of a module without a process: its hints of changes go nowhere. */
import type { Hints } from "../src/kernel/hints/hints.ts";

export const noHints: Hints = { changed: () => {} };
