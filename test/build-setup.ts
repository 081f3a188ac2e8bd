/** Builds the product if its sources have changed: tests that start real processes, or open the console, run the build. */
import type { TestProject } from "vitest/node";
import { buildIfStale } from "../scripts/build-if-stale.js";
import { runs } from "./projects.ts";

export default function setup({ vitest }: TestProject): void {
  if (runs(vitest, "isolated", "processes")) buildIfStale();
}
