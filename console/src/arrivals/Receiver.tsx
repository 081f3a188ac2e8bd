/** The address of a receiver in a narrow column: its host, and the end of its path, which tells one receiver from the other. */
import styles from "./arrivals.module.css";
import { partsOfUrl } from "./receiver.ts";

export function Receiver({ url }: { url: string }) {
  const { host, path } = partsOfUrl(url);
  return (
    <span className={styles.receiver} title={url}>
      <span className={styles.host}>{host}</span>
      {path !== "" && (
        <span className={styles.path}>
          <bdi>{path}</bdi>
        </span>
      )}
    </span>
  );
}
