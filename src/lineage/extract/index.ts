/** The entry point of extract/: the facts of an event, and its digest. */

export { datasetTable } from "./dataset-names.ts";
export { digestOf } from "./digest.ts";
export { factsOf } from "./facts-of.ts";
export type { Source } from "./source.ts";
