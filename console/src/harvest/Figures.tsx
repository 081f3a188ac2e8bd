/** A few values side by side, each below its name. */
import type { ComponentProps } from "react";
import { Fields } from "../parts/page/Fields.tsx";
import styles from "./harvest.module.css";

export function Figures({ of }: { of: ComponentProps<typeof Fields>["rows"] }) {
  return <Fields rows={of} className={styles.figures} />;
}
