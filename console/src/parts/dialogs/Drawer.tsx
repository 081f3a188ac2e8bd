/** The detail of an entry of a list, beside it; below 900 px it takes the page. It is part of the address, so it can be linked. */
import { type ReactNode, useEffect, useId, useRef } from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import styles from "./Drawer.module.css";

interface DrawerProps {
  title: ReactNode;
  actions?: ReactNode;
  onClose(): void;
  children: ReactNode;
}

export function Drawer({ title, actions, onClose, children }: DrawerProps) {
  const text = useWords(common);
  const heading = useId();
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <aside
      ref={panel}
      tabIndex={-1}
      className={styles.drawer}
      aria-labelledby={heading}
      onKeyDown={(event) => {
        if (event.key === "Escape" && !event.defaultPrevented) onClose();
      }}
    >
      <header className={styles.head}>
        <h2 id={heading}>{title}</h2>
        <div className={styles.actions}>
          {actions}
          <Button kind="quiet" icon="close" label={text.close} onPress={onClose} />
        </div>
      </header>
      <div className={styles.content}>{children}</div>
    </aside>
  );
}

/** A list with its drawer. */
export function Split({ children, drawer }: { children: ReactNode; drawer?: ReactNode }) {
  return (
    <div className={styles.split} data-open={drawer !== undefined && drawer !== null && drawer !== false}>
      <div className={styles.list}>{children}</div>
      {drawer}
    </div>
  );
}
