/** Builds the product if its sources have changed: tests that start real processes, or open the console, run the build. */
import { buildIfStale } from "../scripts/build-if-stale.js";

export default buildIfStale;
