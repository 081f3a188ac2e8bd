/** A KPI: what it is, its values as a plot, and each of them with its run. */
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { useLive } from "../api/live.ts";
import { DataList } from "../parts/page/DataList.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded, Page, Panel } from "../parts/page/Page.tsx";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import { type Kpi, type KpiValue, type Paged, paths } from "./api.ts";
import styles from "./arrivals.module.css";
import { KpiPlots } from "./KpiPlots.tsx";
import { arrivals } from "./words.ts";

export function KpiPage() {
  const text = useWords(arrivals);
  const { kpiId = "" } = useParams({ strict: false });
  const watches = [{ kind: "kpi", id: kpiId }];
  const kpi = useLive<Kpi>(paths.kpi(kpiId), watches);
  const values = useLive<Paged<KpiValue>>(paths.values(kpiId), watches);
  return (
    <Page title={kpiId} aside={kpi.data?.name}>
      <Panel title={text.definition}>
        <Loaded result={kpi}>
          {(one) => (
            <div className={styles.padded}>
              <Fields
                rows={[
                  [text.type, text[one.type]],
                  [text.formula, one.expression === null ? null : <code key="formula">{one.expression}</code>],
                  [
                    text.model,
                    one.modelId === null ? null : (
                      <Link key="model" to="/arrivals/models/$modelId" params={{ modelId: one.modelId }}>
                        {one.modelId}
                      </Link>
                    ),
                  ],
                  [
                    text.toKpi,
                    one.dependsOn.length === 0 ? null : (
                      <span key="parts" className={styles.pair}>
                        {one.dependsOn.map((part) => (
                          <Link key={part} to="/arrivals/kpis/$kpiId" params={{ kpiId: part }}>
                            {part}
                          </Link>
                        ))}
                      </span>
                    ),
                  ],
                ]}
              />
            </div>
          )}
        </Loaded>
      </Panel>
      <Loaded result={values}>
        {({ items, total }) => <Values kpiId={kpiId} items={items} total={total} live={values.live} />}
      </Loaded>
    </Page>
  );
}

interface ValuesProps {
  kpiId: string;
  items: readonly KpiValue[];
  total: number;
  live: string | undefined;
}

function Values({ kpiId, items, total, live }: ValuesProps) {
  const text = useWords(arrivals);
  const { number } = useFormats();
  const navigate = useNavigate();
  const opTimes = useMemo(
    () => [...new Set(items.map(({ opTime }) => opTime))].toSorted((a, b) => (a < b ? -1 : 1)),
    [items],
  );
  const open = (modelId: string, opTime: string) =>
    void navigate({ to: "/arrivals", search: { tab: "models", row: modelId, at: opTime } });
  return (
    <>
      {opTimes.length > 0 && (
        <Panel>
          <KpiPlots of={{ kpiId }} opTimes={opTimes} onPick={open} />
        </Panel>
      )}
      <Panel title={text.values}>
        <DataList
          label={text.values}
          rows={items}
          total={total}
          live={live}
          keyOf={({ opTime, dimensions }) => `${opTime} ${JSON.stringify(dimensions)}`}
          empty={text.noValues}
          onOpen={({ modelId, opTime }) => modelId !== null && open(modelId, opTime)}
          columns={[
            { name: "opTime", title: text.opTime, width: "90px", cell: ({ opTime }) => opTime },
            {
              name: "dimensions",
              title: text.dimensions,
              width: "minmax(80px, 1fr)",
              cell: ({ dimensions }) => Object.values(dimensions).join(" · "),
            },
            {
              name: "value",
              title: text.value,
              width: "minmax(80px, 1fr)",
              align: "end",
              cell: ({ valueText }) => valueText,
            },
            {
              name: "run",
              title: text.generation,
              width: "90px",
              align: "end",
              wideOnly: true,
              cell: ({ generation }) => generation,
            },
            {
              name: "updated",
              title: text.updated,
              width: "150px",
              wideOnly: true,
              cell: ({ updatedAt }) => <Time at={updatedAt} />,
            },
          ]}
        />
        {total > items.length && (
          <p className={styles.padded}>{text.newestValues(number(items.length), number(total))}</p>
        )}
      </Panel>
    </>
  );
}
