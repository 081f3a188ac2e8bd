/** One event: why it was not applied, what was left out of the graph, and its text. A dead letter can be tried again. */
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { CodeText } from "../parts/page/CodeText.tsx";
import { ErrorText } from "../parts/page/ErrorText.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { wordFor } from "../words/table.ts";
import { useWords } from "../words/words.ts";
import { type EventDetail, type EventState, paths } from "./api.ts";
import styles from "./lineage.module.css";
import { EVENT_STATES } from "./states.ts";
import { lineage } from "./words.ts";

export function EventDrawer({ tenant, id, onClose }: { tenant: string; id: string; onClose(): void }) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const lacked = useWhyNot("lineage:write");
  const { isPending, run } = useAction();
  const result = useLive<EventDetail>(paths.event(tenant, id), [{ kind: "dead-letter", id }]);
  const again = () =>
    run(async () => {
      const { state } = await act<{ state: EventState }>(paths.replay(tenant, id), "POST");
      await refresh({ kind: "dead-letter" });
      return state === "DEAD" ? text.replayFailed : text.replayed;
    });
  return (
    <Drawer
      title={text.eventTitle(id)}
      onClose={onClose}
      actions={
        result.data?.state === "DEAD" && (
          <Button icon="retry" kind="primary" isPending={isPending} why={lacked} onPress={again}>
            {text.replay}
          </Button>
        )
      }
    >
      <Loaded result={result}>
        {(event) => (
          <>
            <StateMark state={EVENT_STATES[event.state]} label={text[event.state]} />
            {event.error !== null && <ErrorText>{event.error}</ErrorText>}
            {event.warnings.length > 0 && (
              <ul className={styles.warnings} aria-label={text.warnings}>
                {event.warnings.map((warning) => (
                  <li key={warning}>{warning}</li>
                ))}
              </ul>
            )}
            <Fields
              rows={[
                [shared.time, <Time key="time" at={event.eventTime} />],
                [text.received, <Time key="received" at={event.receivedAt} />],
                [text.event, wordFor(text, `event_${event.eventType ?? event.kind}`, event.eventType ?? event.kind)],
                [text.JOB, [event.jobNamespace, event.jobName].filter(Boolean).join(" / ")],
                [text.run, event.runId],
                [text.source, wordFor(text, `source_${event.source}`, event.source)],
                [text.producer, event.producer],
              ]}
            />
            <section className={styles.section}>
              <h3>{text.payload}</h3>
              <CodeText>{JSON.stringify(event.event, null, 2)}</CodeText>
            </section>
          </>
        )}
      </Loaded>
    </Drawer>
  );
}
