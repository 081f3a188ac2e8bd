/** Runs that nodes wait for, for tests: a chain that runs another, and the runs that came of it. */
import type { ChainProcess, ChainProcesses } from "../../../test/chain-process.ts";
import type { TestDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

export function useSubRuns(database: TestDatabase, chains: ChainProcesses) {
  /** The runs that nodes of this one have started, the oldest first. */
  async function childrenOf(runId: string): Promise<string[]> {
    const rows = await database.query<{ run_id: string }>(
      "select run_id from chains.job_run where parent_run_id = $1 order by created_at",
      [runId],
    );
    return rows.map(({ run_id }) => run_id);
  }

  return {
    childrenOf,
    childOf: (runId: string) => until(async () => (await childrenOf(runId))[0], `a run of a node of ${runId}`),

    /** Makes a chain named `child`, and a run of another that waits for it in its node `sub`. Answers the run's id. */
    async startParent(process: ChainProcess, child: readonly object[], sub: object = {}, request: object = {}) {
      await chains.define(process, child, { name: "child" });
      const chainId = await chains.define(process, [
        { id: "sub", type: "chain", cfg: { name: "child" }, ...sub },
        { id: "after", dependsOn: ["sub"] },
      ]);
      return (await process.runs.start(chainId, { by: "test", ...request })).runId;
    },
  };
}
