/** The public interface of chains: DAGs of work, their runs and the engine that runs them (see docs/chains.md). */
import type { Module } from "../kernel/module.ts";
import { CATALOGUE } from "./catalogue.ts";

export type { Graph, GraphNode } from "./definitions/graph.ts";
export type { EndedRun, RunsEndedListener } from "./engine/notify.ts";
export type { KnownRun } from "./engine/run-cache.ts";
export type { NodeStatus } from "./engine/states.ts";
export type { ChainDetail, LogLine, Run, RunNode, RunStatus } from "./replies.ts";
export type { NodeEnd } from "./store/history.ts";
export { FinalFailure, type NodeType, nodeType } from "./types/node-type.ts";

export const chains = { ...CATALOGUE, load: () => import("./open.ts") } as const satisfies Module;
