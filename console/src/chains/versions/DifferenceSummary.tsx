/** The difference of two definitions in words. */
import { useWords } from "../../words/words.ts";
import styles from "../definition.module.css";
import { definitionWords } from "../editor/words.ts";
import { type ChainDifference, isSame } from "./difference.ts";

const NAMED_MAX = 8;

export function DifferenceSummary({ difference }: { difference: ChainDifference }) {
  const text = useWords(definitionWords);
  const { added, removed, changed, fields, isReordered } = difference;
  const named = (names: readonly string[]) => {
    const more = names.length - NAMED_MAX;
    return [...names.slice(0, NAMED_MAX), ...(more > 0 ? [text.andMore(more)] : [])].join(", ");
  };
  if (isSame(difference)) return <p className={styles.summary}>{text.sameVersion}</p>;
  return (
    <ul className={styles.summary}>
      {added.length > 0 && <li data-kind="added">{text.nodesAdded(added.length, named(added))}</li>}
      {removed.length > 0 && <li data-kind="removed">{text.nodesRemoved(removed.length, named(removed))}</li>}
      {changed.length > 0 && (
        <li data-kind="changed">
          {text.nodesChanged(changed.length, named(changed.map(({ id, fields: of }) => `${id} (${of.join(", ")})`)))}
        </li>
      )}
      {fields.length > 0 && <li data-kind="changed">{text.fieldsChanged(fields.join(", "))}</li>}
      {isReordered && <li data-kind="changed">{text.reordered}</li>}
    </ul>
  );
}
