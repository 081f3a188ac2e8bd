/** Pauses of a source or of a part of it: who paused it, when and why, and the buttons that pause and resume. */
import { useState } from "react";
import { act } from "../../api/client.ts";
import { refresh, useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { toast } from "../../parts/actions/toasts.tsx";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { FormDialog } from "../../parts/dialogs/FormDialog.tsx";
import { Failure } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useWords } from "../../words/words.ts";
import { OPERATIONS, type Pause, paths, REASON_MAX, type Source } from "../api.ts";
import styles from "../harvest.module.css";
import { controlWords } from "./words.ts";

export function PauseButton({ source }: { source: string }) {
  const text = useWords(controlWords);
  const lacked = useWhyNot("harvest:control");
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button why={lacked} onPress={() => setOpen(true)}>
        {text.pauseSource}
      </Button>
      {isOpen && <PauseDialog source={source} onClose={() => setOpen(false)} />}
    </>
  );
}

function PauseDialog({ source, onClose }: { source: string; onClose(): void }) {
  const text = useWords(controlWords);
  const { data } = useLive<Source>(paths.definition(source));
  const endpoints = Object.keys(data?.definition.endpoints ?? {});
  return (
    <FormDialog
      title={text.pauseTitle(source)}
      fields={[
        { name: "reason", label: text.pauseReason, maxLength: REASON_MAX, isOptional: true },
        {
          name: "endpoint",
          label: text.endpoint,
          options: [["", text.allEndpoints], ...endpoints.map((name) => [name, name] as const)],
        },
        {
          name: "operation",
          label: text.operation,
          options: [["", text.allOperations], ...OPERATIONS.map((name) => [name, text[name]] as const)],
        },
      ]}
      submit={text.pauseSource}
      onClose={onClose}
      onSubmit={async ({ reason, endpoint, operation }) => {
        await act(paths.pause(source), "POST", {
          reason,
          ...(endpoint !== "" && { endpoint }),
          ...(operation !== "" && { operation }),
        });
        await refresh({ kind: "source", id: source });
        toast(text.sourcePaused);
        onClose();
      }}
    >
      <p className={styles.soft}>{text.pauseExplained}</p>
    </FormDialog>
  );
}

export function PausedMark() {
  const text = useWords(controlWords);
  return <StateMark state="stopped" label={text.paused} />;
}

/** Those of a source, or only those that hold an endpoint and an operation of it. */
export function PauseList({ source, of }: { source: string; of?: { endpoint: string; operation: string } }) {
  const result = useLive<{ items: readonly Pause[] }>(paths.pauses(source), [{ kind: "source", id: source }]);
  const { data, error, refetch } = result;
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  const pauses = data?.items.filter(
    ({ endpoint, operation }) =>
      of === undefined || ((endpoint ?? of.endpoint) === of.endpoint && (operation ?? of.operation) === of.operation),
  );
  if (pauses === undefined || pauses.length === 0) return null;
  return (
    <ul className={styles.lines}>
      {pauses.map((pause) => (
        <PauseLine key={`${pause.endpoint} ${pause.operation}`} pause={pause} />
      ))}
    </ul>
  );
}

function PauseLine({ pause: { source, endpoint, operation, at, by, reason, automatic } }: { pause: Pause }) {
  const text = useWords(controlWords);
  const lacked = useWhyNot("harvest:control");
  const { run, isPending } = useAction();
  const what = [endpoint, operation && text[operation]].filter(Boolean).join(", ");
  const resume = () =>
    run(async () => {
      await act(paths.resume(source), "POST", { ...(endpoint && { endpoint }), ...(operation && { operation }) });
      await refresh({ kind: "source", id: source });
      return text.sourceResumed;
    });
  return (
    <li className={styles.pause}>
      <PausedMark />
      <b>{what || source}</b>
      <span className={styles.soft}>
        {automatic ? text.pausedByMillrace : text.pausedBy(by)}, <Time at={at} relative />
      </span>
      {reason !== null && <span>{reason}</span>}
      <Button icon="play" isPending={isPending} why={lacked} onPress={resume}>
        {text.resume}
      </Button>
    </li>
  );
}
