/** From the chains to all runs and back. */
import { Link } from "@tanstack/react-router";
import { useWords } from "../words/words.ts";
import styles from "./chains.module.css";
import { chainWords } from "./words.ts";

export function ChainLinks() {
  const text = useWords(chainWords);
  return (
    <nav className={styles.facts} aria-label={text.views}>
      <Link to="/chains" activeOptions={{ exact: true, includeSearch: false }}>
        {text.chains}
      </Link>
      <Link to="/chains/runs" activeOptions={{ exact: true, includeSearch: false }}>
        {text.runs}
      </Link>
    </nav>
  );
}
