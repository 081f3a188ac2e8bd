/** The nodes of a chain over its last runs: since when does a node fail? Nodes are read a page at a time, those in view only. */
import { useState } from "react";
import { useLive } from "../../api/live.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Empty, Loaded } from "../../parts/page/Page.tsx";
import { useWords } from "../../words/words.ts";
import { type Grid, paths } from "../api.ts";
import styles from "../chains.module.css";
import { runWords } from "../run/words.ts";
import { chainWords } from "../words.ts";
import { GridCells } from "./GridCells.tsx";
import own from "./RunGrid.module.css";

const PAGE_NODES = 200;
const RUNS = 25;

interface RunGridProps {
  chainId: string;
  name: string;
  /** The newest run that is shown; undefined: that of the chain. */
  until: string | undefined;
  onUntil(runId: string | undefined): void;
  /** The run whose page this is, and the node that is open there. */
  runId?: string;
  nodeId?: string | undefined;
}

export function RunGrid({ chainId, name, until, onUntil, runId, nodeId }: RunGridProps) {
  const text = useWords(runWords);
  const chain = useWords(chainWords);
  const [[firstRow, lastRow], setRows] = useState<readonly [first: number, last: number]>([0, 0]);
  const [isOld, setOld] = useState(false);
  const shownUntil = until ?? (isOld ? runId : undefined);
  const pathAt = (from: number) => paths.grid(chainId, { runs: RUNS, until: shownUntil, from, size: PAGE_NODES });
  const [firstPage, lastPage] = [pageOf(firstRow), pageOf(lastRow)];
  const first = useLive<Grid>(pathAt(firstPage), [{ kind: "run" }]);
  const last = useLive<Grid>(lastPage === firstPage ? undefined : pathAt(lastPage), [{ kind: "run" }]);
  // The run of the page is older than the last ones of its chain: it becomes the newest that is shown.
  if (runId !== undefined && shownUntil === undefined && first.data && !has(first.data, runId)) setOld(true);
  return (
    <Loaded result={first}>
      {(data) => (
        <div className={styles.view}>
          <div className={own.bar}>
            {data.runs.length === RUNS && (
              <Button kind="quiet" onPress={() => onUntil(data.runs.at(-1)?.runId)}>
                {text.older}
              </Button>
            )}
            {until !== undefined && (
              <Button kind="quiet" onPress={() => onUntil(undefined)}>
                {text.newest}
              </Button>
            )}
          </div>
          {data.runs.length === 0 ? (
            <Empty>{chain.noRuns}</Empty>
          ) : (
            <GridCells
              label={text.gridOf(name)}
              runs={data.runs.toReversed()}
              total={data.total}
              nodeAt={(row) => {
                const page = [data, last.data].find((one) => one?.from === pageOf(row));
                return page?.nodes[row - pageOf(row)];
              }}
              runId={runId}
              nodeId={nodeId}
              until={shownUntil ?? data.runs[0]?.runId}
              onRows={(from, to) => {
                if (pageOf(from) !== firstPage || pageOf(to) !== lastPage) setRows([from, to]);
              }}
            />
          )}
        </div>
      )}
    </Loaded>
  );
}

function pageOf(row: number): number {
  return Math.floor(row / PAGE_NODES) * PAGE_NODES;
}

function has({ runs }: Grid, runId: string): boolean {
  return runs.some((run) => run.runId === runId);
}
