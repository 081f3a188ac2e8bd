/** Why something has failed, as it was reported, over several lines if it has them. */
import { CodeText } from "./CodeText.tsx";
import styles from "./ErrorText.module.css";

export function ErrorText({ children }: { children: string }) {
  return <CodeText className={styles.error}>{children}</CodeText>;
}
