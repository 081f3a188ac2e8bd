/** The frame of a page: title, actions, tabs and content; and what it shows while it has nothing to show. */
import { type ReactNode, useEffect, useRef } from "react";
import type { ApiError } from "../../api/client.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import styles from "./Page.module.css";
import { Sentence } from "./Sentence.tsx";

interface PageProps {
  title: ReactNode;
  /** Beside the title: state, tenant. */
  aside?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, aside, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The tabs and the history of the browser name the page.
  useEffect(() => {
    document.title = `${heading.current?.textContent} · Millrace`;
  });
  return (
    <main className={styles.page} id="main">
      <header className={styles.header}>
        <h1 ref={heading}>{title}</h1>
        {aside}
        <div className={styles.actions}>{actions}</div>
      </header>
      {children}
    </main>
  );
}

export function Panel({ title, aside, children }: { title?: ReactNode; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.panel}>
      {(title !== undefined || aside !== undefined) && (
        <div className={styles.panelHead}>
          <h2>{title}</h2>
          <div className={styles.actions}>{aside}</div>
        </div>
      )}
      {children}
    </section>
  );
}

interface Result<Data> {
  data: Data | undefined;
  error: ApiError | null;
  refetch(): unknown;
}

/** The data of a query once it is there. A failure is shown in this panel only. */
export function Loaded<Data>({ result, children }: { result: Result<Data>; children: (data: Data) => ReactNode }) {
  const { data, error, refetch } = result;
  if (data !== undefined) {
    return (
      <>
        {error && <Failure error={error} onRetry={() => void refetch()} />}
        {children(data)}
      </>
    );
  }
  return error ? <Failure error={error} onRetry={() => void refetch()} /> : <Skeleton />;
}

export function Failure({ error, onRetry }: { error: ApiError; onRetry?: () => void }) {
  const text = useWords(common);
  return (
    <div className={styles.failure} role="alert">
      <p>
        <Sentence text={error.message} /> <code>{error.code}</code>
      </p>
      {onRetry && (
        <Button icon="retry" onPress={onRetry}>
          {text.retry}
        </Button>
      )}
    </div>
  );
}

/** Nothing to show, and what would change that. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <p>{typeof children === "string" ? <Sentence text={children} /> : children}</p>
      {action}
    </div>
  );
}

/** While there is nothing to show yet. */
export function Skeleton() {
  const text = useWords(common);
  return (
    <div className={styles.skeleton} role="status" aria-label={text.loading}>
      <span />
      <span />
      <span />
    </div>
  );
}
