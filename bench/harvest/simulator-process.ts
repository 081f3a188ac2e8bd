/** The simulator of Crossref in a process of its own, so that answering takes nothing from who asks. Says its base URL when it listens. */
import { type SimulatorOptions, startCrossref } from "../../src/simulators/index.ts";

const simulator = await startCrossref(JSON.parse(process.argv[2] ?? "{}") as SimulatorOptions);
process.on("disconnect", () => process.exit(0));
process.send?.(simulator.baseUrl);
