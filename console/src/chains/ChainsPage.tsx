/** All chains: how their last runs went, what starts them next, how long they take. */
import { Link, useNavigate } from "@tanstack/react-router";
import { type NumberedPage, onEndOf, pageAfter, useLiveList } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Filter } from "../parts/controls/Select.tsx";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded, Page } from "../parts/page/Page.tsx";
import { Sentence } from "../parts/page/Sentence.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { GLYPHS } from "../parts/states/state.ts";
import { durationText } from "../parts/times/durations.ts";
import { Time } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type ChainSummary, paths, type SummaryRun } from "./api.ts";
import { ChainLinks } from "./ChainLinks.tsx";
import styles from "./chains.module.css";
import { definitionWords } from "./editor/words.ts";
import { chainsRoute } from "./routes.ts";
import { RUN_STATES, tookMs } from "./states.ts";
import { chainWords } from "./words.ts";

const PAGE_CHAINS = 200;
const BAR_PX = 14;

export function ChainsPage() {
  const text = useWords(chainWords);
  const shared = useWords(common);
  const { q = "" } = chainsRoute.useSearch();
  const navigate = useNavigate();
  const { newChain } = useWords(definitionWords);
  const missing = useWhyNot("chain:write");
  const result = useLiveList<NumberedPage<ChainSummary>>(
    (page) => paths.summaries({ keyword: q, page, size: PAGE_CHAINS }),
    pageAfter,
    [{ kind: "chain" }, { kind: "run" }, { kind: "schedule" }],
    { atMostEveryMs: 2_000 },
  );
  return (
    <Page
      title={text.chains}
      aside={<ChainLinks />}
      actions={
        <Button icon="plus" why={missing} onPress={() => void navigate({ to: "/chains/new" })}>
          {newChain}
        </Button>
      }
    >
      <div className={styles.filters}>
        <Filter
          label={shared.filter}
          value={q}
          onChange={(value) => void navigate({ to: "/chains", search: { q: value || undefined }, replace: true })}
        />
      </div>
      <Loaded result={result}>
        {(pages) => (
          <div className={styles.list}>
            <DataList
              label={text.chains}
              rows={pages.flatMap(({ items }) => items)}
              total={pages[0]?.total ?? 0}
              columns={columnsOf(text, shared)}
              keyOf={({ chainId }) => chainId}
              live={result.live}
              onOpen={({ chainId }) => void navigate({ to: "/chains/$chainId", params: { chainId } })}
              onEnd={onEndOf(result)}
              empty={text.noChains}
              {...(q !== "" && { onClear: () => void navigate({ to: "/chains", replace: true }) })}
              fill
            />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function columnsOf(text: (typeof chainWords)["en"], shared: (typeof common)["en"]): readonly Column<ChainSummary>[] {
  return [
    {
      name: "name",
      title: shared.name,
      width: "minmax(150px, 2fr)",
      cell: ({ chainId, name, enabled }) => (
        <>
          <Link to="/chains/$chainId" params={{ chainId }}>
            {name}
          </Link>
          {!enabled && <small> {text.disabled}</small>}
        </>
      ),
    },
    { name: "strip", title: text.lastRuns, width: "224px", wideOnly: true, cell: ({ runs }) => <Strip runs={runs} /> },
    { name: "last", title: text.lastRun, width: "minmax(140px, 3fr)", cell: ({ runs }) => <LastRun run={runs[0]} /> },
    {
      name: "next",
      title: text.nextTrigger,
      width: "130px",
      wideOnly: true,
      cell: ({ next }) => (next ? <Time at={next.at} relative due /> : text.byHand),
    },
    {
      name: "waits",
      title: text.waitsFor,
      width: "minmax(80px, 1fr)",
      wideOnly: true,
      cell: ({ waitsFor }) => <span title={waitsFor.join(", ")}>{waitsFor.join(", ")}</span>,
    },
    {
      name: "times",
      title: text.times,
      width: "130px",
      wideOnly: true,
      align: "end",
      cell: ({ p50Ms, p95Ms }) =>
        p50Ms === null || p95Ms === null ? "" : `${durationText(p50Ms)} / ${durationText(p95Ms)}`,
    },
  ];
}

/** Newest at the right; the height of a bar is how long the run took, beside the others. */
function Strip({ runs }: { runs: readonly SummaryRun[] }) {
  const shared = useWords(common);
  const lengths = runs.map((run) => (run.endedAt === null ? 0 : (tookMs(run, 0) ?? 0)));
  const longest = Math.max(1, ...lengths);
  return (
    <span className={styles.strip}>
      {runs.map(({ runId, status, opTime }, index) => {
        const state = RUN_STATES[status];
        const label = [shared[state], opTime, durationText(lengths[index] ?? 0)].filter(Boolean).join(", ");
        return (
          <Link
            key={runId}
            to="/chains/runs/$runId"
            params={{ runId }}
            className={styles.bar}
            data-state={state}
            aria-label={label}
            title={label}
            tabIndex={-1}
          >
            <i style={{ height: 2 + Math.round(((lengths[index] ?? 0) / longest) * (BAR_PX - 2)) }} />
            <span aria-hidden="true">{GLYPHS[state]}</span>
          </Link>
        );
      })}
    </span>
  );
}

function LastRun({ run }: { run: SummaryRun | undefined }) {
  const shared = useWords(common);
  if (!run) return shared.never;
  return (
    <Link to="/chains/runs/$runId" params={{ runId: run.runId }} title={run.reason ?? undefined}>
      <StateMark state={RUN_STATES[run.status]} />{" "}
      {run.reason !== null && (
        <span className={styles.reason}>
          <Sentence text={run.reason} />
        </span>
      )}
    </Link>
  );
}
