/** What the doctor finds: what is wrong in full, the worst first, and a list of what is in order. */
import { useLive } from "../api/live.ts";
import { DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { Sentence } from "../parts/page/Sentence.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import type { State } from "../parts/states/state.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import styles from "./admin.module.css";
import { DOCTOR, type Finding } from "./api.ts";
import { admin } from "./words.ts";

/** It looks at everything. */
const PACE = { atLeastEveryMs: 15_000 };

type Verdict = Finding["verdict"];
const STATE_OF: Readonly<Record<Verdict, State>> = { ok: "success", warning: "waiting", broken: "failed" };

export function DoctorPanel() {
  const text = useWords(admin);
  const result = useLive<{ findings: readonly Finding[] }>(DOCTOR, [], PACE);
  const mark = ({ verdict }: Finding) => <StateMark state={STATE_OF[verdict]} label={text[verdict]} />;
  const shared = useWords(common);
  return (
    <Loaded result={result}>
      {({ findings }) => {
        const problems = [...findings.filter(is("broken")), ...findings.filter(is("warning"))];
        return (
          <>
            {problems.length > 0 && (
              <Panel>
                <ul className={styles.problems}>
                  {problems.map((one) => (
                    <li key={one.check}>
                      {mark(one)}
                      <b>{one.check}</b>
                      <span>
                        <Sentence text={one.found} />{" "}
                        {one.advice !== undefined && (
                          <span className={styles.advice}>
                            <Sentence text={one.advice} />
                          </span>
                        )}
                      </span>
                    </li>
                  ))}
                </ul>
              </Panel>
            )}
            <Panel>
              <DataList
                label={text.doctor}
                rows={findings.filter(is("ok"))}
                keyOf={({ check }) => check}
                live={result.live}
                columns={[
                  { name: "verdict", title: shared.state, width: "100px", cell: mark },
                  { name: "check", title: text.check, width: "minmax(80px, 150px)", cell: ({ check }) => check },
                  {
                    name: "found",
                    title: text.found,
                    width: "minmax(80px, 1fr)",
                    cell: ({ found }) => <span title={found}>{found}</span>,
                  },
                ]}
              />
            </Panel>
          </>
        );
      }}
    </Loaded>
  );
}

function is(wanted: Verdict): (finding: Finding) => boolean {
  return ({ verdict }) => verdict === wanted;
}
