/** When a source is harvested by itself, what the last fire led to, and pausing it. */
import { Link } from "@tanstack/react-router";
import { act } from "../../api/client.ts";
import { refresh, useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Empty, Loaded, Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useWords } from "../../words/words.ts";
import { paths, type Schedule } from "../api.ts";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { PLAN_STATES } from "../states.ts";
import { harvestWords } from "../words.ts";

export function Schedules({ source }: { source: string }) {
  const text = useWords(harvestWords);
  const result = useLive<{ items: readonly Schedule[] }>(paths.schedules(source), [{ kind: "source", id: source }]);
  return (
    <Panel title={text.schedules}>
      <Loaded result={result}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>{text.noSchedules}</Empty>
          ) : (
            <ul className={styles.rows}>
              {items.map((schedule) => (
                <ScheduleRow key={schedule.scheduleId} schedule={schedule} source={source} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function ScheduleRow({ schedule, source }: { schedule: Schedule; source: string }) {
  const text = useWords(harvestWords);
  const operations = useWords(planWords);
  const { run, isPending } = useAction();
  const lacked = useWhyNot("harvest:control");
  const { scheduleId, name, endpoint, operation, cron, timeZone, paused, held, nextAt, lastAt } = schedule;
  const toggle = () =>
    run(async () => {
      await act(paths.schedule(scheduleId, paused ? "resume" : "pause"), "POST");
      await refresh({ kind: "source", id: source });
      return paused ? text.scheduleResumed : text.schedulePaused;
    });
  return (
    <li>
      <b>{name}</b>
      <span>
        {endpoint}, {operations[operation]} <code>{cron}</code> {timeZone}
      </span>
      <span className={styles.soft}>
        {paused ? (
          text.pausedSchedule
        ) : held !== null ? (
          <span title={held}>{text.heldSchedule}</span>
        ) : (
          <>
            {text.fires} <Time at={nextAt} relative due />
          </>
        )}
      </span>
      <span className={styles.soft}>
        {text.lastFire} <Time at={lastAt} relative /> <Outcome last={schedule.last} />
      </span>
      <span className={styles.end}>
        <Button isPending={isPending} why={lacked} onPress={toggle}>
          {paused ? text.resume : text.pause}
        </Button>
      </span>
    </li>
  );
}

function Outcome({ last }: { last: Schedule["last"] }) {
  const text = useWords(harvestWords);
  if (last === null) return null;
  if (last.planId !== undefined && last.status !== undefined) {
    return (
      <Link to="/harvest/plans/$planId" params={{ planId: last.planId }}>
        <StateMark state={PLAN_STATES[last.status]} label={text[last.status]} />
      </Link>
    );
  }
  if (last.refused !== undefined) return <StateMark state="failed" label={text.scheduleRefused} />;
  return <span title={last.nothing}>{text.scheduleNothing}</span>;
}
