/** The door of chains: DAGs of work, their runs and the engine that drives them (docs/chains.md tells more). */
export { chainRoutes } from "./chain-routes.ts";
export { type Chains, createChains } from "./chains.ts";
export { chainsChecks } from "./doctor.ts";
export type { Place, RunFlow, StatementFlow } from "./flows.ts";
export { runRoutes } from "./run-routes.ts";
export { createRunStreams } from "./run-stream.ts";
export { poolRoutes, scheduleRoutes } from "./schedule-routes.ts";
export { ChainsSettings } from "./settings.ts";
export type { ArrivedTable } from "./store/waits.ts";
export type { EndedRun } from "./tell.ts";
export { httpType } from "./types/http.ts";
export { FinalFailure, type NodeType, nodeType } from "./types/node-type.ts";
export { shell } from "./types/shell.ts";
export { sqlType } from "./types/sql.ts";
export { loadUserTypes } from "./types/user-types.ts";
