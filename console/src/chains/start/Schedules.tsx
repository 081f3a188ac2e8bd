/** The schedules of a chain: when each fires next, and a pause. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "../../api/client.ts";
import { refresh, useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { toast } from "../../parts/actions/toasts.tsx";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Dialog } from "../../parts/dialogs/Dialog.tsx";
import { FormDialog } from "../../parts/dialogs/FormDialog.tsx";
import { DataList } from "../../parts/page/DataList.tsx";
import { Loaded } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { paths, type Schedule } from "../api.ts";
import styles from "../chains.module.css";
import { definitionWords } from "../editor/words.ts";
import { shortRunId } from "../names.ts";

export function Schedules({ chainId }: { chainId: string }) {
  const text = useWords(definitionWords);
  const shared = useWords(common);
  const missing = useWhyNot("chain:write");
  const { isPending, run } = useAction();
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<Schedule>();
  const result = useLive<{ items: readonly Schedule[] }>(paths.schedules(chainId), [{ kind: "schedule" }]);
  const setPaused = ({ scheduleId, name, paused }: Schedule) =>
    run(async () => {
      await act(paths.scheduleAction(chainId, scheduleId, paused ? "unpause" : "pause"), "POST");
      await refresh({ kind: "schedule" });
      return paused ? text.unpausedNow(name) : text.pausedNow(name);
    });
  const remove = ({ scheduleId, name }: Schedule) =>
    run(async () => {
      await act(paths.schedule(chainId, scheduleId), "DELETE");
      setRemoved(undefined);
      await refresh({ kind: "schedule" });
      return text.scheduleRemoved(name);
    });
  return (
    <>
      <div className={styles.filters}>
        <Button icon="plus" why={missing} onPress={() => setAdding(true)}>
          {text.addSchedule}
        </Button>
      </div>
      {isAdding && <NewSchedule chainId={chainId} onClose={() => setAdding(false)} />}
      {removed && (
        <Dialog
          title={text.removeSchedule(removed.name)}
          isOpen
          onClose={() => setRemoved(undefined)}
          footer={
            <>
              <Button onPress={() => setRemoved(undefined)}>{shared.cancel}</Button>
              <Button kind="danger" isPending={isPending} onPress={() => remove(removed)}>
                {text.remove}
              </Button>
            </>
          }
        >
          <p>{text.removeMeans}</p>
        </Dialog>
      )}
      <Loaded result={result}>
        {({ items }) => (
          <DataList
            label={text.schedules}
            rows={items}
            keyOf={({ scheduleId }) => scheduleId}
            live={result.live}
            empty={text.noSchedules}
            columns={[
              {
                name: "state",
                title: shared.state,
                width: "100px",
                cell: ({ paused }) => (
                  <StateMark state={paused ? "stopped" : "success"} label={paused ? text.paused : text.active} />
                ),
              },
              { name: "name", title: shared.name, width: "minmax(100px, 2fr)", cell: ({ name }) => name },
              { name: "cron", title: text.cron, width: "130px", cell: ({ cron }) => <code>{cron}</code> },
              { name: "zone", title: text.timeZone, width: "140px", wideOnly: true, cell: ({ timeZone }) => timeZone },
              {
                name: "next",
                title: text.next,
                width: "150px",
                wideOnly: true,
                cell: ({ nextAt }) => nextAt !== null && <Time at={nextAt} relative due />,
              },
              {
                name: "last",
                title: text.last,
                width: "110px",
                wideOnly: true,
                cell: ({ lastRunId }) =>
                  lastRunId === null ? (
                    shared.never
                  ) : (
                    <Link to="/chains/runs/$runId" params={{ runId: lastRunId }}>
                      {shortRunId(lastRunId)}
                    </Link>
                  ),
              },
              {
                name: "actions",
                title: shared.actions,
                width: "180px",
                align: "end",
                cell: (schedule) => (
                  <>
                    <Button why={missing} onPress={() => setPaused(schedule)}>
                      {schedule.paused ? text.unpause : text.pause}
                    </Button>{" "}
                    <Button kind="danger" why={missing} onPress={() => setRemoved(schedule)}>
                      {text.remove}
                    </Button>
                  </>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

/** `grain` is empty for runs without an opTime. */
function NewSchedule({ chainId, onClose }: { chainId: string; onClose(): void }) {
  const text = useWords(definitionWords);
  const shared = useWords(common);
  return (
    <FormDialog
      title={text.addSchedule}
      fields={[
        { name: "name", label: shared.name, maxLength: 128, placeholder: "nightly" },
        { name: "cron", label: text.cron, maxLength: 128, placeholder: "0 3 * * *" },
        { name: "timeZone", label: text.timeZone, maxLength: 64, initial: "UTC" },
        {
          name: "grain",
          label: text.opTimeOfRuns,
          options: [
            ["", text.noOpTime],
            ["day", text.dayBefore],
            ["hour", text.hourBefore],
            ["month", text.monthBefore],
          ],
        },
      ]}
      submit={text.add}
      onClose={onClose}
      onSubmit={async ({ grain, ...fields }) => {
        const opTime = grain === "" ? {} : { opTime: { grain, offset: -1 } };
        await act(paths.schedules(chainId), "POST", { ...fields, ...opTime });
        await refresh({ kind: "schedule" });
        toast(text.scheduleAdded(fields.name));
        onClose();
      }}
    />
  );
}
