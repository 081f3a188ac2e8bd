/** One async task: what it is for, its attempts, and trying it again or giving it up. */
import { Link } from "@tanstack/react-router";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { ErrorText } from "../parts/page/ErrorText.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { useWords } from "../words/words.ts";
import { paths, type TaskDetail, type TaskStatus } from "./api.ts";
import styles from "./lineage.module.css";
import { ATTEMPT_STATES, TASK_STATES } from "./states.ts";
import { lineage } from "./words.ts";

const RESETTABLE: readonly TaskStatus[] = ["FAILED", "DEAD", "CANCELED"];
const CANCELABLE: readonly TaskStatus[] = ["PENDING", "FAILED", "DEAD"];

export function TaskDrawer({ tenant, id, onClose }: { tenant: string; id: string; onClose(): void }) {
  const text = useWords(lineage);
  const why = useWhyNot("lineage:write");
  const { isPending, run } = useAction();
  const result = useLive<TaskDetail>(paths.task(tenant, id), [{ kind: "lineage-task", id }]);
  const status = result.data?.status;
  const write = (path: string, message: string) =>
    run(async () => {
      await act(path, "POST");
      await refresh({ kind: "lineage-task" });
      return message;
    });
  return (
    <Drawer
      title={text.taskTitle(id)}
      onClose={onClose}
      actions={
        <>
          {status && RESETTABLE.includes(status) && (
            <Button
              icon="retry"
              kind="primary"
              isPending={isPending}
              why={why}
              onPress={() => write(paths.resetTask(tenant, id), text.taskReset)}
            >
              {text.reset}
            </Button>
          )}
          {status && CANCELABLE.includes(status) && (
            <Button
              icon="stop"
              isPending={isPending}
              why={why}
              onPress={() => write(paths.cancelTask(tenant, id), text.taskCanceled)}
            >
              {text.cancelTask}
            </Button>
          )}
        </>
      }
    >
      <Loaded result={result}>
        {(task) => (
          <>
            <StateMark state={TASK_STATES[task.status]} label={text[`task_${task.status}`]} />
            {task.lastError !== null && <ErrorText>{task.lastError}</ErrorText>}
            <Fields
              rows={[
                [text.type, text[task.type]],
                [
                  text.result,
                  <Link
                    key="asset"
                    to="/lineage/assets/$assetId"
                    params={{ assetId: task.resourceId }}
                    search={{ tenant }}
                  >
                    {text[task.resourceType]} {task.resourceId}
                  </Link>,
                ],
                [text.retries, `${task.retryCount}/${task.maxRetry}`],
                [
                  text.nextRun,
                  status === "PENDING" || status === "FAILED" ? <Time key="next" at={task.nextRunAt} due /> : null,
                ],
                [text.modelName, task.modelFingerprint],
              ]}
            />
            <section className={styles.section}>
              <h3>{text.attempts}</h3>
              {task.attempts.length === 0 && <p className={styles.soft}>{text.noAttempts}</p>}
              <ol className={styles.attempts}>
                {task.attempts.toReversed().map((attempt) => (
                  <li key={attempt.attemptNo}>
                    <span className={styles.pair}>
                      <b>{attempt.attemptNo}.</b> <StateMark state={ATTEMPT_STATES[attempt.status]} />{" "}
                      <Time at={attempt.startedAt} />
                      {attempt.latencyMs !== null && (
                        <span className={styles.soft}>{durationText(attempt.latencyMs)}</span>
                      )}
                    </span>
                    {attempt.errorMessage !== null && <span className={styles.reason}>{attempt.errorMessage}</span>}
                  </li>
                ))}
              </ol>
            </section>
          </>
        )}
      </Loaded>
    </Drawer>
  );
}
