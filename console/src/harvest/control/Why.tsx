/** Why a slice does not finish, in sentences of the server: the deciding one first. */
import { useLive } from "../../api/live.ts";
import { Loaded } from "../../parts/page/Page.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useWords } from "../../words/words.ts";
import { paths, type Why as WhyReply } from "../api.ts";
import styles from "../harvest.module.css";
import { controlWords } from "./words.ts";

/** Its place in the queue, a worker that is gone and a gate that opens change without a hint. */
const AGAIN_MS = 10_000;

export function Why({ planId, sliceId }: { planId: string; sliceId: number }) {
  const text = useWords(controlWords);
  const result = useLive<WhyReply>(paths.why(planId, sliceId), [{ kind: "plan", id: planId }, { kind: "source" }], {
    atLeastEveryMs: AGAIN_MS,
  });
  return (
    <section className={styles.section} aria-label={text.why}>
      <h3>{text.why}</h3>
      <Loaded result={result}>
        {({ causes }) => (
          <ul className={styles.lines}>
            {causes.map(({ code, sentence, since, until }) => (
              <li key={`${code} ${sentence}`}>
                <span className={styles.sentence}>{sentence}</span>
                {since !== null && (
                  <span className={styles.soft}>
                    {text.since} <Time at={since} />
                  </span>
                )}
                {until !== null && (
                  <span className={styles.soft}>
                    {text.until} <Time at={until} />
                  </span>
                )}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </section>
  );
}
