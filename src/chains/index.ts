/** The door of chains: DAGs of work, their runs and the engine that drives them (docs/chains.md tells more). */

export { type Chains, createChains } from "./chains.ts";
export { chainRoutes } from "./definitions/routes.ts";
export { chainsChecks } from "./doctor.ts";
export type { EndedRun } from "./engine/tell.ts";
export type { Place, RunFlow, StatementFlow } from "./flows.ts";
export { runRoutes } from "./runs/routes.ts";
export { createRunStreams } from "./runs/stream.ts";
export { poolRoutes, scheduleRoutes } from "./schedules/routes.ts";
export { ChainsSettings } from "./settings.ts";
export type { ArrivedTable } from "./store/waits.ts";
export { httpType } from "./types/http.ts";
export { FinalFailure, type NodeType, nodeType } from "./types/node-type.ts";
export { shell } from "./types/shell.ts";
export { sqlType } from "./types/sql.ts";
export { loadUserTypes } from "./types/user-types.ts";
