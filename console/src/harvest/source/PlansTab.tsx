/** The plans of a source, the newest first, with the reason of each that failed. */
import { Link, useNavigate } from "@tanstack/react-router";
import { onEndOf, useLiveList } from "../../api/live.ts";
import { Select } from "../../parts/controls/Select.tsx";
import { type Column, DataList } from "../../parts/page/DataList.tsx";
import { Loaded, Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Elapsed } from "../../parts/times/Elapsed.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type Listed, type Operation, type Plan, type PlanStatus, paths } from "../api.ts";
import { PausedMark } from "../control/Pauses.tsx";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { PLAN_STATES } from "../states.ts";
import { useSourceSearch } from "../use-search.ts";
import { WindowText } from "../WindowText.tsx";
import { harvestWords } from "../words.ts";

const PAGE = 200;
const STATUSES = ["READY", "FAILED", "COMPLETE", "CANCELLED", "PARTIAL"] as const satisfies readonly PlanStatus[];

export function PlansTab({ source }: { source: string }) {
  const text = useWords(harvestWords);
  const operations = useWords(planWords);
  const shared = useWords(common);
  const navigate = useNavigate();
  const { search, set } = useSourceSearch(source);
  const { status } = search;
  const result = useLiveList<Listed<Plan>>(
    (after) => paths.plans({ source, status, after, limit: PAGE }),
    ({ next }) => next,
    [{ kind: "plan" }, { kind: "source", id: source }],
  );
  return (
    <>
      <div className={styles.bar}>
        <Select
          label={shared.state}
          isLabelHidden
          value={status ?? ""}
          options={[["", text.allStates], ...STATUSES.map((one) => [one, text[one]] as const)]}
          onChange={(next) => set({ status: next || undefined })}
        />
      </div>
      <Panel>
        <Loaded result={result}>
          {(pages) => (
            <DataList
              label={text.plans}
              rows={pages.flatMap(({ items }) => items)}
              columns={columnsOf(text, shared, operations)}
              keyOf={({ planId }) => planId}
              live={result.live}
              onOpen={({ planId }) => void navigate({ to: "/harvest/plans/$planId", params: { planId } })}
              onEnd={onEndOf(result)}
              empty={text.noPlans}
              {...(status !== undefined && { onClear: () => set({ status: undefined }) })}
            />
          )}
        </Loaded>
      </Panel>
    </>
  );
}

function columnsOf(
  text: (typeof harvestWords)["en"],
  shared: (typeof common)["en"],
  operations: Readonly<Record<Operation, string>>,
): readonly Column<Plan>[] {
  return [
    {
      name: "state",
      title: shared.state,
      width: "110px",
      cell: ({ status, paused }) =>
        paused === null ? <StateMark state={PLAN_STATES[status]} label={text[status]} /> : <PausedMark />,
    },
    {
      name: "window",
      title: text.window,
      width: "minmax(200px, 2fr)",
      cell: ({ planId, window }) => (
        <Link to="/harvest/plans/$planId" params={{ planId }}>
          <WindowText window={window} />
        </Link>
      ),
    },
    {
      name: "operation",
      title: text.operation,
      width: "minmax(80px, 150px)",
      wideOnly: true,
      cell: ({ operation }) => operations[operation],
    },
    {
      name: "endpoint",
      title: text.endpoint,
      width: "minmax(80px, 1fr)",
      wideOnly: true,
      cell: ({ endpoint }) => endpoint,
    },
    {
      name: "reason",
      title: shared.reason,
      width: "minmax(120px, 4fr)",
      wideOnly: true,
      cell: ({ paused, remarks: { reason = paused ?? undefined } }) => (
        <span className={paused === null ? styles.reason : undefined} title={reason}>
          {reason}
        </span>
      ),
    },
    {
      name: "created",
      title: text.created,
      width: "146px",
      wideOnly: true,
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
    {
      name: "took",
      title: shared.duration,
      width: "80px",
      align: "end",
      wideOnly: true,
      cell: ({ createdAt, endedAt }) => <Elapsed from={createdAt} to={endedAt} />,
    },
  ];
}
