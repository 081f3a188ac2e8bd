/** `npm run bench -- NAME`: us, the peers and the physical limit in one run, as ratios. */
import { requestOf, unknownPart } from "./arguments.ts";

interface Suite {
  /** Which of them can be measured alone. None if unset. */
  parts?: readonly string[];
  run(rounds: number, parts: readonly string[]): Promise<void>;
}

const SUITES: Record<string, () => Promise<Suite>> = {
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
if ("problem" in request) refuse(request.problem);
const suite = (await SUITES[request.suite]?.()) as Suite;
const problem = unknownPart(request, suite.parts ?? []);
if (problem !== undefined) refuse(problem);
await suite.run(request.rounds, request.parts);

function refuse(reason: string): never {
  console.error(reason);
  process.exit(2);
}
