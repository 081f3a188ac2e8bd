/**
 * Retries all stuck shards that match, wherever the list ends: the server counts first, and then retries in batches. A call
 * retries a limited number, so a long retry is several calls, with progress. The page warns before it is closed between them: the
 * shards that are left would stay stuck.
 */
import { useEffect, useRef, useState } from "react";
import { act } from "../api/client.ts";
import { refresh } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { toast, toastError } from "../parts/actions/toasts.tsx";
import { Button } from "../parts/controls/Button.tsx";
import { Dialog } from "../parts/dialogs/Dialog.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, REASONS, type Retried, type RetryOf } from "./api.ts";
import styles from "./tracking.module.css";
import { tracking } from "./words.ts";

export function RetryAll({ of, label }: { of: RetryOf; label: string }) {
  const text = useWords(tracking);
  const shared = useWords(common);
  const { number } = useFormats();
  const lacked = useWhyNot("pipeline:write");
  const [preview, setPreview] = useState<Retried>();
  const [done, setDone] = useState<number>();
  const isClosed = useRef(false);
  const which = Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined));
  const send = (isDry: boolean, body: object) => act<Retried>(paths.retry(isDry), "POST", body);

  function close(): void {
    isClosed.current = true;
    setPreview(undefined);
    setDone(undefined);
  }
  async function ask(): Promise<void> {
    try {
      isClosed.current = false;
      setPreview(await send(true, which));
    } catch (error) {
      toastError(error);
    }
  }
  useEffect(() => {
    if (done === undefined) return;
    const warn = (event: Event) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [done]);
  async function confirm({ retried: all, until }: Retried): Promise<void> {
    let sum = 0;
    let isMore = true;
    setDone(0);
    try {
      while (isMore && !isClosed.current) {
        const { retried, more } = await send(false, { ...which, until });
        sum += retried;
        isMore = more;
        if (!isClosed.current) setDone(sum);
      }
    } catch (error) {
      toastError(error);
    }
    toast(isMore ? text.retriedSome(number(sum), number(Math.max(0, all - sum))) : text.retried(number(sum)));
    await refresh({ kind: "file" });
    close();
  }
  const count = preview?.retried ?? 0;
  return (
    <>
      <Button icon="retry" why={lacked} onPress={() => void ask()}>
        {label}
      </Button>
      {preview && (
        <Dialog
          title={text.retryTitle}
          isOpen
          onClose={close}
          footer={
            <>
              <Button onPress={close}>{shared.cancel}</Button>
              <Button
                kind="primary"
                isDisabled={count === 0 || done !== undefined}
                isPending={done !== undefined}
                onPress={() => void confirm(preview)}
              >
                {text.retryConfirm(number(count))}
              </Button>
            </>
          }
        >
          {count === 0 ? (
            <p>{text.retryNone}</p>
          ) : (
            <>
              <p>{text.retryCount(number(count))}</p>
              <ul className={styles.counts}>
                {REASONS.filter((reason) => preview.by_reason[reason] > 0).map((reason) => (
                  <li key={reason}>
                    {number(preview.by_reason[reason])} {text[`reason_${reason}`]}
                  </li>
                ))}
              </ul>
              {preview.by_reason.started_long > 0 && <p className={styles.warning}>{text.retryMayWork}</p>}
              {of.stage === "event-ingest" && <p>{text.retryIngest}</p>}
            </>
          )}
          {done !== undefined && (
            <>
              <progress
                className={styles.progress}
                max={count}
                value={done}
                aria-label={text.retryProgress(number(done), number(count))}
              />
              <p role="status">{text.retryProgress(number(done), number(count))}</p>
              <p>{text.retryKeepOpen}</p>
            </>
          )}
        </Dialog>
      )}
    </>
  );
}
