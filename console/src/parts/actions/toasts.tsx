/** Short messages about what has happened, in a region that screen readers announce. */
import { useSyncExternalStore } from "react";
import { ApiError } from "../../api/client.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import styles from "./toasts.module.css";

interface Toast {
  id: number;
  text: string;
  kind: "info" | "error";
  /** Of the error catalogue. */
  code?: string;
  onRetry?: (() => void) | undefined;
}

const SHOWN_MS = 6_000;
const TOASTS_MAX = 4;
let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next.slice(-TOASTS_MAX);
  for (const listener of listeners) listener();
}

export function toast(text: string): void {
  const id = add({ text, kind: "info" });
  setTimeout(() => dismiss(id), SHOWN_MS);
}

/** It stays until it is closed. `onRetry` repeats what has failed, where that is safe. */
export function toastError(error: unknown, onRetry?: () => void): void {
  add({
    text: error instanceof Error ? error.message : String(error),
    kind: "error",
    ...(error instanceof ApiError && { code: error.code }),
    onRetry,
  });
}

function add(one: Omit<Toast, "id">): number {
  count += 1;
  set([...toasts, { id: count, ...one }]);
  return count;
}

function dismiss(id: number): void {
  set(toasts.filter((one) => one.id !== id));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  const text = useWords(common);
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {shown.map(({ id, text: message, kind, code, onRetry }) => (
        <div key={id} className={styles.toast} data-kind={kind}>
          <span>
            {message} {code !== undefined && <code>{code}</code>}
          </span>
          {onRetry && (
            <Button
              icon="retry"
              onPress={() => {
                dismiss(id);
                onRetry();
              }}
            >
              {text.retry}
            </Button>
          )}
          <Button kind="quiet" icon="close" label={text.close} onPress={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
