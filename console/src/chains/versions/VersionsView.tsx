/** The versions of a chain, newest first, and what differs between two of them: in words, as text and as a graph. */
import { type ReactNode, useMemo } from "react";
import { onEndOf, useLive, useLiveList } from "../../api/live.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Select } from "../../parts/controls/Select.tsx";
import { Difference } from "../../parts/editor/Difference.tsx";
import { useDraft } from "../../parts/editor/draft.ts";
import { DataList } from "../../parts/page/DataList.tsx";
import { Empty, Failure, Loaded } from "../../parts/page/Page.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useWords } from "../../words/words.ts";
import { type Chain, type ChainVersion, paths, type VersionPage } from "../api.ts";
import styles from "../definition.module.css";
import { chainText } from "../editor/definition.ts";
import { definitionWords } from "../editor/words.ts";
import { type ChainSearch, chainRoute } from "../routes.ts";
import { chainWords } from "../words.ts";
import { DifferenceGraph } from "./DifferenceGraph.tsx";
import { DifferenceSummary } from "./DifferenceSummary.tsx";
import { differenceOf } from "./difference.ts";

const VIEWS = ["text", "graph"] as const;

export function VersionsView({ chain }: { chain: Chain }) {
  const text = useWords(definitionWords);
  const shared = useWords(chainWords);
  const navigate = chainRoute.useNavigate();
  const search = chainRoute.useSearch();
  const to = search.version ?? chain.version;
  const from = search.against ?? Math.max(1, to - 1);
  const list = useLiveList<VersionPage>(
    (before) => paths.versions(chain.chainId, before),
    ({ next }) => (next === null ? null : String(next)),
    [{ kind: "chain", id: chain.chainId }],
  );
  const rows = useMemo(() => (list.data ?? []).flatMap(({ items }) => items), [list.data]);
  const before = useVersion(chain, from);
  const after = useVersion(chain, to);
  const go = (change: Pick<ChainSearch, "version" | "against" | "view">) =>
    void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  const others = rows.map(({ version }) => version).filter((version) => version !== to);
  const offered = others.includes(from) || from === to ? others : [...others, from];
  return (
    <div className={styles.versions}>
      <div className={styles.versionList}>
        {list.error && <Failure error={list.error} onRetry={() => void list.refetch()} />}
        <DataList
          label={text.versions}
          rows={rows}
          keyOf={({ version }) => String(version)}
          selected={String(to)}
          onOpen={({ version }) => go({ version, against: undefined })}
          onEnd={onEndOf(list)}
          columns={[
            { name: "version", title: shared.version, width: "64px", cell: ({ version }) => version },
            {
              name: "at",
              title: text.savedAt,
              width: "minmax(90px, 1fr)",
              cell: ({ createdAt }) => <Time at={createdAt} relative />,
            },
            {
              name: "by",
              title: text.savedBy,
              width: "minmax(80px, 1fr)",
              cell: ({ createdBy }) => <span title={createdBy}>{createdBy}</span>,
            },
          ]}
        />
      </div>
      {chain.version === 1 ? (
        <Empty>{text.onlyVersion}</Empty>
      ) : (
        <Loaded result={after}>
          {(now) => (
            <Loaded result={before}>
              {(old) => (
                <Compared
                  before={old}
                  after={now}
                  restore={<Restore chain={chain} version={now} />}
                  view={search.view ?? "text"}
                  onView={(view) => go({ view: view === "text" ? undefined : view })}
                  from={
                    <Select
                      label={text.compareWith}
                      value={String(from)}
                      options={[
                        ...(from === to ? [[String(from), shared.versionOf(from)] as const] : []),
                        ...offered.map((one) => [String(one), shared.versionOf(one)] as const),
                      ]}
                      onChange={(one) => go({ version: to, against: Number(one) })}
                    />
                  }
                />
              )}
            </Loaded>
          )}
        </Loaded>
      )}
    </div>
  );
}

/** The present one is there already. */
function useVersion(chain: Chain, version: number) {
  const isPresent = version === chain.version;
  const read = useLive<ChainVersion>(isPresent ? undefined : paths.version(chain.chainId, version));
  const data = isPresent ? chain : read.data?.version === version ? read.data : undefined;
  return { ...read, data };
}

interface ComparedProps {
  before: Chain | ChainVersion;
  after: Chain | ChainVersion;
  view: string;
  onView(view: string): void;
  /** What chooses the version to compare with. */
  from: ReactNode;
  restore: ReactNode;
}

function Compared({ before, after, view, onView, from, restore }: ComparedProps) {
  const text = useWords(definitionWords);
  const { versionOf } = useWords(chainWords);
  const { old, now, difference } = useMemo(() => {
    const [one, other] = [fieldsOf(before), fieldsOf(after)];
    return { old: one, now: other, difference: differenceOf(one, other) };
  }, [before, after]);
  const label = text.difference(versionOf(before.version), versionOf(after.version));
  return (
    <section className={styles.compared} aria-label={label}>
      <div className={styles.bar}>
        <h2>{label}</h2>
        {from}
        <Select
          label={text.show}
          isLabelHidden
          value={view}
          options={VIEWS.map((one) => [one, text[one]] as const)}
          onChange={onView}
        />
        {restore}
      </div>
      <DifferenceSummary difference={difference} />
      {view === "graph" ? (
        <DifferenceGraph label={label} before={old.dag.nodes} after={now.dag.nodes} difference={difference} />
      ) : (
        <Difference
          label={label}
          before={{ title: versionOf(before.version), text: chainText(old) }}
          after={{ title: versionOf(after.version), text: chainText(now) }}
        />
      )}
    </section>
  );
}

/** Begins an edit with the text of an older version. Limits are no part of it, so those of today stay. */
function Restore({ chain, version }: { chain: Chain; version: Chain | ChainVersion }) {
  const text = useWords(definitionWords);
  const navigate = chainRoute.useNavigate();
  const draft = useDraft(`chain.${chain.chainId}`, { text: chainText(chain), version: chain.version });
  if (version.version === chain.version) return null;
  return (
    <Button
      why={draft.isChanged ? text.draftExists : undefined}
      onPress={() => {
        draft.change(chainText({ ...chain, ...fieldsOf(version) }));
        void navigate({ search: { tab: "definition" } });
      }}
    >
      {text.editFrom}
    </Button>
  );
}

/** What is part of a version. */
function fieldsOf({ name, description, dag }: Chain | ChainVersion) {
  return { name, description, dag };
}
