/** `npm run bench -- NAME`: us, the peers and the physical limit in one run, as ratios. */
import { parseArgs } from "node:util";

const SUITES: Record<string, () => Promise<{ run(rounds: number): Promise<void> }>> = {
  lease: () => import("./lease/suite.ts"),
  tracking: () => import("./tracking/suite.ts"),
  chains: () => import("./chains/suite.ts"),
  arrivals: () => import("./arrivals/suite.ts"),
  lineage: () => import("./lineage/suite.ts"),
  start: () => import("./start/suite.ts"),
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "5" } },
});
const [name = ""] = positionals;
const suite = SUITES[name];
if (!suite) {
  console.error(`Usage: npm run bench -- ${Object.keys(SUITES).join("|")} [--rounds 5]`);
  process.exit(2);
}
const { run } = await suite();
await run(Number(values.rounds));
