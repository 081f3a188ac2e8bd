/** Why something has failed, as it was reported, over several lines if it has them. */
import styles from "./ErrorText.module.css";

export function ErrorText({ children }: { children: string }) {
  return (
    // It scrolls, so the keyboard must reach it.
    <pre className={styles.error} tabIndex={0}>
      {children}
    </pre>
  );
}
