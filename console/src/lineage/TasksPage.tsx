/** Async tasks: embeddings and summaries that wait, run or have failed, and the batches in which they went to the model. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Select } from "../parts/controls/Select.tsx";
import { Tabs } from "../parts/controls/Tabs.tsx";
import { Dialog } from "../parts/dialogs/Dialog.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type Batch, type Paged, paths, type Statistics, TASK_STATUSES, TASK_TYPES, type Task } from "./api.ts";
import { LineagePage } from "./LineagePage.tsx";
import styles from "./lineage.module.css";
import { tasksRoute } from "./routes.ts";
import { ATTEMPT_STATES, TASK_STATES } from "./states.ts";
import { TaskDrawer } from "./TaskDrawer.tsx";
import { lineage } from "./words.ts";

const SHOWN_MAX = 1_000;
const RESETTABLE = ["FAILED", "DEAD", "CANCELED"] as const;
const WATCHES = [{ kind: "lineage-task" }] as const;

type Set = (change: Partial<ReturnType<typeof tasksRoute.useSearch>>) => void;

export function TasksPage() {
  const text = useWords(lineage);
  const search = tasksRoute.useSearch();
  const navigate = useNavigate();
  const set: Set = (change) =>
    void navigate({
      to: "/lineage/tasks",
      search: { ...search, ...change },
      replace: isInPlace(search, change, "id"),
    });
  const { tab = "tasks" } = search;
  return (
    <LineagePage title={text.tasks} tenant={search.tenant} onTenant={(tenant) => set({ tenant, id: undefined })}>
      {(tenant) => (
        <>
          <Tabs
            label={text.parts}
            current={tab}
            tabs={[
              { name: "tasks", title: text.tasks },
              { name: "batches", title: text.batches },
            ]}
          />
          {tab === "batches" ? <Batches tenant={tenant} /> : <Tasks tenant={tenant} search={search} set={set} />}
        </>
      )}
    </LineagePage>
  );
}

interface TasksProps {
  tenant: string;
  search: ReturnType<typeof tasksRoute.useSearch>;
  set: Set;
}

function Tasks({ tenant, search, set }: TasksProps) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const { number } = useFormats();
  const lacked = useWhyNot("lineage:write");
  const { isPending, run } = useAction();
  const { status, type, id } = search;
  const result = useLive<Paged<Task>>(paths.tasks(tenant, { status, type, size: SHOWN_MAX }), WATCHES);
  const statistics = useLive<Statistics>(paths.statistics(tenant), WATCHES).data;
  // The server resets all of a state, whatever their type.
  const resettable = type === undefined ? RESETTABLE.find((one) => one === status) : undefined;
  const [asks, setAsks] = useState(false);
  const listed = result.data?.total ?? 0;
  const resetAll = () =>
    run(async () => {
      setAsks(false);
      const { reset } = await act<{ reset: number }>(paths.resetTasks(tenant), "POST", { status: resettable });
      await refresh(...WATCHES);
      return text.resetCount(number(reset));
    });
  return (
    <>
      <div className={styles.bar}>
        <Select
          label={shared.state}
          value={status ?? ""}
          options={[["", shared.all], ...TASK_STATUSES.map((one) => [one, text[`task_${one}`]] as const)]}
          onChange={(next) => set({ status: next || undefined })}
        />
        <Select
          label={text.type}
          value={type ?? ""}
          options={[["", shared.all], ...TASK_TYPES.map((one) => [one, text[one]] as const)]}
          onChange={(next) => set({ type: next || undefined })}
        />
        <span className={styles.pair}>
          {TASK_STATUSES.flatMap((one) => {
            const counts = statistics?.tasks.filter((some) => some.status === one).map(({ count }) => count) ?? [];
            if (statistics === undefined || counts.length === 0) return [];
            // The limit is one of each type.
            const isCut = counts.some((count) => count >= statistics.countMax);
            const sum = number(counts.reduce((all, count) => all + count, 0)) + (isCut ? "+" : "");
            return [<StateMark key={one} state={TASK_STATES[one]} label={`${sum} ${text[`task_${one}`]}`} />];
          })}
        </span>
        {resettable !== undefined && (
          <Button
            icon="retry"
            isPending={isPending}
            isDisabled={listed === 0}
            why={lacked}
            onPress={() => setAsks(true)}
          >
            {text.resetAll}
          </Button>
        )}
        {resettable !== undefined && (
          <Dialog
            title={text.resetAll}
            isOpen={asks}
            onClose={() => setAsks(false)}
            footer={
              <>
                <Button onPress={() => setAsks(false)}>{shared.cancel}</Button>
                <Button kind="primary" onPress={resetAll}>
                  {text.resetConfirm(number(listed))}
                </Button>
              </>
            }
          >
            <p>{text.resetAsks(number(listed), text[`task_${resettable}`])}</p>
          </Dialog>
        )}
      </div>
      <Split
        drawer={
          id !== undefined && <TaskDrawer key={id} tenant={tenant} id={id} onClose={() => set({ id: undefined })} />
        }
      >
        <Panel>
          <Loaded result={result}>
            {({ items, total }) => (
              <>
                <DataList
                  label={text.tasks}
                  rows={items}
                  total={total}
                  keyOf={(task) => task.id}
                  live={result.live}
                  selected={id}
                  onOpen={(task) => set({ id: task.id })}
                  empty={text.noTasks}
                  {...((status ?? type) !== undefined && {
                    onClear: () => set({ status: undefined, type: undefined }),
                  })}
                  columns={[
                    {
                      name: "state",
                      title: shared.state,
                      width: "120px",
                      cell: (task) => (
                        <StateMark state={TASK_STATES[task.status]} label={text[`task_${task.status}`]} />
                      ),
                    },
                    { name: "type", title: text.type, width: "96px", cell: (task) => text[task.type] },
                    {
                      name: "asset",
                      title: text.asset,
                      width: "minmax(90px, 1fr)",
                      cell: ({ resourceType, resourceId }) => (
                        <Link to="/lineage/assets/$assetId" params={{ assetId: resourceId }} search={{ tenant }}>
                          {text[resourceType]} {resourceId}
                        </Link>
                      ),
                    },
                    {
                      name: "retries",
                      title: text.retries,
                      width: "70px",
                      align: "end",
                      wideOnly: true,
                      cell: ({ retryCount, maxRetry }) => `${retryCount}/${maxRetry}`,
                    },
                    {
                      name: "next",
                      title: text.nextRun,
                      width: "110px",
                      wideOnly: true,
                      cell: (task) =>
                        (task.status === "PENDING" || task.status === "FAILED") && (
                          <Time at={task.nextRunAt} relative due />
                        ),
                    },
                    {
                      name: "reason",
                      title: shared.reason,
                      width: "minmax(80px, 3fr)",
                      wideOnly: true,
                      cell: ({ lastError }) => (
                        <span className={styles.reason} title={lastError ?? ""}>
                          {lastError}
                        </span>
                      ),
                    },
                    {
                      name: "changed",
                      title: text.changed,
                      width: "110px",
                      wideOnly: true,
                      cell: ({ updatedAt }) => <Time at={updatedAt} relative />,
                    },
                  ]}
                />
                {total > items.length && (
                  <p className={styles.padded}>{text.newestOf(number(items.length), number(total))}</p>
                )}
              </>
            )}
          </Loaded>
        </Panel>
      </Split>
    </>
  );
}

function Batches({ tenant }: { tenant: string }) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const { number } = useFormats();
  const result = useLive<Paged<Batch>>(paths.batches(tenant, { size: SHOWN_MAX }), WATCHES);
  return (
    <Panel>
      <Loaded result={result}>
        {({ items, total }) => (
          <DataList
            label={text.batches}
            rows={items}
            total={total}
            keyOf={({ batchNo }) => batchNo}
            live={result.live}
            empty={text.noTasks}
            columns={[
              { name: "time", title: shared.time, width: "146px", cell: ({ startedAt }) => <Time at={startedAt} /> },
              { name: "type", title: text.type, width: "110px", cell: (batch) => text[batch.type] },
              {
                name: "progress",
                title: text.progress,
                width: "minmax(120px, 1fr)",
                cell: ({ successCount, failedCount, plannedSize }) => (
                  <span className={styles.progress}>
                    <progress max={plannedSize} value={successCount + failedCount} aria-label={text.progress} />
                    {text.progressOf(number(successCount), number(plannedSize))}
                    {failedCount > 0 && <span className={styles.reason}>{text.failedOf(number(failedCount))}</span>}
                  </span>
                ),
              },
              {
                name: "duration",
                title: shared.duration,
                width: "90px",
                align: "end",
                wideOnly: true,
                cell: ({ startedAt, finishedAt }) =>
                  finishedAt === null ? "" : durationText(Date.parse(finishedAt) - Date.parse(startedAt)),
              },
              {
                name: "status",
                title: shared.state,
                width: "120px",
                cell: ({ status }) => <StateMark state={ATTEMPT_STATES[status]} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}
