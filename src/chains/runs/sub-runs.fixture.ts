/** Child runs for tests: a chain that runs another one, and the runs that its nodes have started. */
import type { ChainProcess, ChainProcesses } from "../../../test/chain-process.ts";
import type { TestDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

export function useSubRuns(database: TestDatabase, chains: ChainProcesses) {
  /** The child runs of a run, oldest first. */
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

    /** Creates a chain named `child`, and starts a run of another chain whose node `sub` runs it. Returns the run's id. */
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
