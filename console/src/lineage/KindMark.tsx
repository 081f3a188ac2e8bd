/** The kind of an asset, with its icon. */
import { Icon } from "../parts/controls/icons.tsx";
import { useWords } from "../words/words.ts";
import type { Kind } from "./api.ts";
import { iconOf } from "./kinds.ts";
import styles from "./lineage.module.css";
import { lineage } from "./words.ts";

export function KindMark({ kind }: { kind: Kind }) {
  const text = useWords(lineage);
  return (
    <span className={styles.kind}>
      <Icon name={iconOf(kind)} size={14} />
      {text[kind]}
    </span>
  );
}
