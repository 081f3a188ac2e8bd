/** The detail of an entry of a list, beside it; below 900 px it takes the page. It is part of the address, so it can be linked. */
import { type ReactNode, useEffect, useEffectEvent, useId, useRef } from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import styles from "./Drawer.module.css";

interface DrawerProps {
  title: ReactNode;
  actions?: ReactNode;
  onClose(): void;
  /** The focus stays where it is, for a drawer that opens while the keyboard selects. */
  isPassive?: boolean;
  children: ReactNode;
}

export function Drawer({ title, actions, onClose, isPassive = false, children }: DrawerProps) {
  const text = useWords(common);
  const heading = useId();
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    if (!isPassive) panel.current?.focus();
    return () => {
      // The focus was in the drawer and is lost with it. One that is in the list stays there.
      if (before instanceof HTMLElement && document.activeElement === document.body) before.focus();
    };
    // oxlint-disable-next-line react/exhaustive-deps -- when it opens
  }, []);
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (event.key === "Escape" && !event.defaultPrevented && isForDrawer(event.target, panel.current)) onClose();
  });
  useEffect(() => {
    // Not on the panel: the focus may be in the list, or nowhere after a click beside it.
    const listener = (event: KeyboardEvent) => onKey(event);
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, []);
  return (
    <aside ref={panel} tabIndex={-1} className={styles.drawer} aria-labelledby={heading}>
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

/** A key in the drawer or its list is. One in an editor or a filter of the list, a dialog, a menu or a bar is for that. */
function isForDrawer(target: EventTarget | null, panel: Element | null): boolean {
  if (!(target instanceof HTMLElement) || target.isContentEditable) return false;
  if (target === document.body || panel?.contains(target)) return true;
  return panel?.closest(`.${styles.split}`)?.contains(target) === true && !target.matches("input, select, textarea");
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
