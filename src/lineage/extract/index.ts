/** The door of extract/: what an event says of the graph, and the part of the event that says it. */

export { claimsOf } from "./claims-of.ts";
export { digestOf } from "./digest.ts";
export type { Source } from "./source.ts";
