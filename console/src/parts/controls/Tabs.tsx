/** Parts of a page, each with an address of its own. */
import { Link } from "@tanstack/react-router";
import styles from "./Tabs.module.css";

export interface Tab {
  name: string;
  title: string;
  count?: number | undefined;
}

interface TabsProps {
  tabs: readonly Tab[];
  current: string;
  label: string;
  /** The filters and the open row of one tab mean nothing to another. */
  isSeparate?: boolean;
}

/** The tab is the search parameter `tab`; the first one needs none. */
export function Tabs({ tabs, current, label, isSeparate }: TabsProps) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map(({ name, title, count }, index) => (
        <Link
          key={name}
          to="."
          search={
            ((before: Record<string, unknown>) => ({
              ...(!isSeparate && before),
              tab: index === 0 ? undefined : name,
            })) as never
          }
          // Otherwise the first tab, which has no parameter, counts as current on all of them.
          activeOptions={{ exact: true, includeSearch: true, explicitUndefined: true }}
          aria-current={name === current ? "page" : undefined}
          className={styles.tab}
        >
          {title}
          {count !== undefined && <span className={styles.count}>{count}</span>}
        </Link>
      ))}
    </nav>
  );
}
