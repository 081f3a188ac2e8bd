/** Events of OpenLineage as rows: when, what became of the run, which job, and whether the event was applied. */
import { DataList } from "../parts/page/DataList.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { wordFor } from "../words/table.ts";
import { useWords } from "../words/words.ts";
import type { LineageEvent } from "./api.ts";
import styles from "./lineage.module.css";
import { EVENT_STATES, runState } from "./states.ts";
import { lineage } from "./words.ts";

interface EventListProps {
  label: string;
  events: readonly LineageEvent[];
  live: string | undefined;
  selected: string | undefined;
  onOpen(id: string): void;
  onEnd: (() => void) | undefined;
  empty: string;
}

export function EventList({ label, events, live, selected, onOpen, onEnd, empty }: EventListProps) {
  const text = useWords(lineage);
  const shared = useWords(common);
  return (
    <DataList
      label={label}
      rows={events}
      keyOf={({ id }) => id}
      live={live}
      selected={selected}
      onOpen={({ id }) => onOpen(id)}
      onEnd={onEnd}
      empty={empty}
      columns={[
        { name: "time", title: shared.time, width: "146px", cell: ({ eventTime }) => <Time at={eventTime} /> },
        {
          name: "event",
          title: text.event,
          width: "116px",
          wideOnly: true,
          cell: ({ eventType, kind }) => (
            <StateMark
              state={runState(eventType)}
              label={wordFor(text, `event_${eventType ?? kind}`, eventType ?? kind)}
            />
          ),
        },
        {
          name: "job",
          title: text.JOB,
          width: "minmax(56px, 2fr)",
          cell: ({ jobName, jobNamespace }) => <span title={`${jobNamespace ?? ""} ${jobName ?? ""}`}>{jobName}</span>,
        },
        {
          name: "run",
          title: text.run,
          width: "84px",
          wideOnly: true,
          cell: ({ runId }) => runId && <code title={runId}>{runId.slice(-8)}</code>,
        },
        {
          name: "state",
          title: shared.state,
          width: "92px",
          cell: ({ state }) => <StateMark state={EVENT_STATES[state]} label={text[state]} />,
        },
        {
          name: "reason",
          title: shared.reason,
          width: "minmax(80px, 3fr)",
          wideOnly: true,
          cell: ({ error }) => (
            <span className={styles.reason} title={error ?? ""}>
              {error}
            </span>
          ),
        },
      ]}
    />
  );
}
