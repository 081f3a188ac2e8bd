/** The modules that the search asks, in the order in which their answers are listed. */
import type { Finder } from "./app/found.ts";
import { arrivalFinder } from "./arrivals/finder.ts";
import { chainFinder } from "./chains/finder.ts";
import { harvestFinder } from "./harvest/finder.ts";
import { lineageFinder } from "./lineage/finder.ts";
import { fileFinder } from "./tracking/finder.ts";

export const FINDERS: readonly Finder[] = [chainFinder, arrivalFinder, lineageFinder, fileFinder, harvestFinder];
