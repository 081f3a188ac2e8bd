/** What lies directly before or after an asset, of any number: page by page, found by a part of the name on the server. */
import { Link, useNavigate } from "@tanstack/react-router";
import { onEndOf, useLiveList } from "../../api/live.ts";
import { Filter } from "../../parts/controls/Select.tsx";
import { DataList } from "../../parts/page/DataList.tsx";
import { Loaded } from "../../parts/page/Page.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type Listed, type Neighbour, paths } from "../api.ts";
import { KindMark } from "../KindMark.tsx";
import { placeOf } from "../kinds.ts";
import styles from "../lineage.module.css";
import { lineage } from "../words.ts";

const PAGE = 1_000;

interface NeighboursProps {
  tenant: string;
  assetId: string;
  direction: "up" | "down";
  /** A part of the name; in the address. */
  q: string;
  onFilter(q: string | undefined): void;
  /** Opens the graph of the chosen one instead of its page. */
  tab?: "graph";
}

export function Neighbours({ tenant, assetId, direction, q, onFilter, tab }: NeighboursProps) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const { number } = useFormats();
  const navigate = useNavigate();
  const result = useLiveList<Listed<Neighbour>>(
    (cursor) => paths.neighbours(assetId, { tenant, direction, q: q.trim(), limit: PAGE, cursor }),
    ({ next }) => next,
    [{ kind: "asset", id: assetId }],
  );
  const label = direction === "up" ? text.upstream : text.downstream;
  const search = { tenant, ...(tab && { tab }) };
  return (
    <>
      <Loaded result={result}>
        {(pages) => {
          const rows = pages.flatMap(({ items }) => items);
          return (
            <>
              {(rows.length > 10 || q !== "") && (
                <div className={styles.listHead}>
                  <Filter label={text.findNeighbour} value={q} onChange={(next) => onFilter(next || undefined)} />
                  <span className={styles.soft}>
                    {result.hasNextPage ? text.loadedSoFar(number(rows.length)) : shared.rows(number(rows.length))}
                  </span>
                </div>
              )}
              <DataList
                label={label}
                rows={rows}
                keyOf={({ id, relation }) => `${relation} ${id}`}
                live={result.live}
                onOpen={({ id }) => void navigate({ to: "/lineage/assets/$assetId", params: { assetId: id }, search })}
                onEnd={onEndOf(result)}
                empty={direction === "up" ? text.noUpstream : text.noDownstream}
                {...(q !== "" && { onClear: () => onFilter(undefined) })}
                columns={[
                  { name: "kind", title: text.kind, width: "104px", cell: ({ kind }) => <KindMark kind={kind} /> },
                  {
                    name: "name",
                    title: shared.name,
                    width: "minmax(100px, 1fr)",
                    cell: (asset) => (
                      <Link
                        to="/lineage/assets/$assetId"
                        params={{ assetId: asset.id }}
                        search={search}
                        title={`${placeOf(asset)} ${asset.name}`}
                      >
                        {asset.name}
                      </Link>
                    ),
                  },
                  ...(tab === undefined && rows.some(({ executions }) => executions !== null)
                    ? [
                        {
                          name: "runs",
                          title: text.runs,
                          // With its last run in one column: the two lists stand side by side.
                          width: "124px",
                          align: "end" as const,
                          cell: ({ executions, lastRunAt }: Neighbour) => (
                            <>
                              {executions !== null && number(executions)}
                              {lastRunAt !== null && (
                                <>
                                  {" · "}
                                  <Time at={lastRunAt} relative />
                                </>
                              )}
                            </>
                          ),
                        },
                      ]
                    : []),
                ]}
              />
            </>
          );
        }}
      </Loaded>
    </>
  );
}
