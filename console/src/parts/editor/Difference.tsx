/** Two texts and what differs, side by side or in one column. Its library is loaded when a page shows a difference. */
import { lazy, Suspense, useSyncExternalStore } from "react";
import { preference } from "../../app/preference.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Select } from "../controls/Select.tsx";
import type { Side } from "./DifferenceView.tsx";
import styles from "./Editor.module.css";
import { editorWords } from "./words.ts";

const DifferenceView = lazy(() => import("./DifferenceView.tsx"));

const LAYOUTS = ["split", "unified"] as const;
type Layout = (typeof LAYOUTS)[number];
const layout = preference<Layout>("difference", "split", (stored) => LAYOUTS.find((one) => one === stored));

/** Two columns of code cannot be read on a narrow page. */
const narrow = matchMedia("(max-width: 900px)");

function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      narrow.addEventListener("change", listener);
      return () => narrow.removeEventListener("change", listener);
    },
    () => narrow.matches,
  );
}

export function Difference({ label, before, after }: { label: string; before: Side; after: Side }) {
  const text = useWords(editorWords);
  const shared = useWords(common);
  const chosen = useSyncExternalStore(layout.subscribe, layout.get);
  const isNarrow = useIsNarrow();
  const isSame = before.text === after.text;
  return (
    <section className={styles.difference} aria-label={label}>
      <div className={styles.differenceHead}>
        <div className={styles.titles}>
          <b>{before.title}</b>
          <b>{after.title}</b>
        </div>
        {!isNarrow && !isSame && (
          <Select
            label={text.layout}
            isLabelHidden
            value={chosen}
            options={[
              ["split", text.sideBySide],
              ["unified", text.oneBelowOther],
            ]}
            onChange={layout.set}
          />
        )}
      </div>
      {isSame ? (
        <p className={styles.count}>{text.same}</p>
      ) : (
        <Suspense fallback={<p className={styles.count}>{shared.loading}</p>}>
          <DifferenceView label={label} before={before} after={after} isSplit={chosen === "split" && !isNarrow} />
        </Suspense>
      )}
    </section>
  );
}
