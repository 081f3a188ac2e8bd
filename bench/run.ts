/** `npm run bench -- NAME`: us, the peers and the physical limit in one run, as ratios. */
import { requestOf } from "./arguments.ts";

const SUITES: Record<string, () => Promise<{ run(rounds: number, parts: readonly string[]): Promise<void> }>> = {
  lease: () => import("./lease/suite.ts"),
  tracking: () => import("./tracking/suite.ts"),
  chains: () => import("./chains/suite.ts"),
  arrivals: () => import("./arrivals/suite.ts"),
  lineage: () => import("./lineage/suite.ts"),
  harvest: () => import("./harvest/suite.ts"),
  gate: () => import("./gate/suite.ts"),
  console: () => import("./console/suite.ts"),
  start: () => import("./start/suite.ts"),
};

const request = requestOf(process.argv.slice(2), Object.keys(SUITES));
if ("problem" in request) {
  console.error(request.problem);
  process.exit(2);
}
const suite = await SUITES[request.suite]?.();
await suite?.run(request.rounds, request.parts);
