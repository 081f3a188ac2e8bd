/** What the server says about the text: whether it can be used, its endpoints, its warnings, and what applying it changes. */
import { ChangeList } from "../../parts/page/ChangeList.tsx";
import { Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useWords } from "../../words/words.ts";
import type { Checked, Difference } from "./check.ts";
import styles from "./definition.module.css";
import { definitionWords } from "./words.ts";

interface TestResultProps {
  checked: Checked | undefined;
  isReadable: boolean;
  isChecking: boolean;
  /** Why a valid definition can still not be applied here. */
  problem: string | undefined;
}

export function TestResult({ checked, isReadable, isChecking, problem }: TestResultProps) {
  const text = useWords(definitionWords);
  return (
    <Panel
      title={text.result}
      aside={
        <span className={styles.soft} aria-live="polite">
          {isChecking
            ? text.checking
            : checked && (
                <>
                  {text.tested} <Time at={checked.at} relative />
                </>
              )}
        </span>
      }
    >
      <div className={styles.result}>
        {!isReadable && <StateMark state="failed" label={text.notReadable} />}
        {checked && (
          <>
            <StateMark
              state={checked.valid ? "success" : "failed"}
              label={checked.valid ? text.valid : text.notValid(checked.problems.length)}
            />
            {checked.valid && problem !== undefined && <StateMark state="failed" label={problem} />}
            {checked.endpoints.length > 0 && (
              <section>
                <h3>{text.endpoints}</h3>
                <ul>
                  {checked.endpoints.map(({ endpoint, needs }) => (
                    <li key={endpoint}>
                      {endpoint}{" "}
                      {needs.length > 0 && <span className={styles.soft}>{text.needs(needs.join(", "))}</span>}
                    </li>
                  ))}
                </ul>
              </section>
            )}
            {checked.warnings.length > 0 && (
              <section>
                <h3>{text.warnings}</h3>
                <ul>
                  {checked.warnings.map(({ path, reason }) => (
                    <li key={`${path.join(".")} ${reason}`}>
                      <code>{path.join(".")}</code> {reason}
                    </li>
                  ))}
                </ul>
              </section>
            )}
            {checked.difference && <Changes difference={checked.difference} />}
          </>
        )}
      </div>
    </Panel>
  );
}

function Changes({ difference: { outcome, changes } }: { difference: Difference }) {
  const text = useWords(definitionWords);
  return (
    <section>
      <h3>{text.changes}</h3>
      {outcome === "created" && <p>{text.isNew}</p>}
      {outcome === "unchanged" && <p>{text.noChanges}</p>}
      {changes.length > 0 && <ChangeList changes={changes} />}
    </section>
  );
}
