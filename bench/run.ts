/** `npm run bench -- NAME`: us, the peers and the physical limit in one run, as ratios. */
import { parseArgs } from "node:util";

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

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "5" } },
});
// Some suites have parts, which can be measured alone.
const [name = "", ...parts] = positionals;
const suite = SUITES[name];
if (!suite) {
  console.error(`Usage: npm run bench -- ${Object.keys(SUITES).join("|")} [PART...] [--rounds 5]`);
  process.exit(2);
}
const { run } = await suite();
await run(Number(values.rounds), parts);
