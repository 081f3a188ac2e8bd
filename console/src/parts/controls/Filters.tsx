/** The filters of a list in one row; a phone shows them at a click, so that they do not push the list out of view. */
import { type ReactNode, useId, useState } from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "./Button.tsx";
import styles from "./Filters.module.css";

interface FiltersProps {
  children: ReactNode;
  /** How many of them leave rows out. */
  inUse: number;
  /** Stays in view. */
  aside?: ReactNode;
}

export function Filters({ children, inUse, aside }: FiltersProps) {
  const text = useWords(common);
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  return (
    <div className={styles.bar}>
      <span className={styles.toggle}>
        <Button expands={{ id, isOpen }} onPress={() => setOpen(!isOpen)}>
          {inUse === 0 ? text.filter : `${text.filter} (${inUse})`}
        </Button>
      </span>
      <div id={id} className={styles.filters} data-open={isOpen}>
        {children}
      </div>
      <span className={styles.aside}>{aside}</span>
    </div>
  );
}
