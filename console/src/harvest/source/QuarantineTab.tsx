/** Records of a source that could not be stored: grouped by error and path, the records of a group, and asking for them again. */
import { Link } from "@tanstack/react-router";
import { onEndOf, useLive, useLiveList } from "../../api/live.ts";
import { Drawer, Split } from "../../parts/dialogs/Drawer.tsx";
import { CodeText } from "../../parts/page/CodeText.tsx";
import { DataList } from "../../parts/page/DataList.tsx";
import { Fields } from "../../parts/page/Fields.tsx";
import { Empty, Loaded, Panel } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type Listed, paths, type QuarantinedRecord, type QuarantineGroup, type QuarantineGroups } from "../api.ts";
import styles from "../harvest.module.css";
import { useSourceSearch } from "../use-search.ts";
import { quarantineWords } from "./quarantine-words.ts";

const PAGE = 200;
/** Counting looks at thousands of rows. */
const PACE = { atMostEveryMs: 2_000 };

export function QuarantineTab({ source }: { source: string }) {
  const text = useWords(quarantineWords);
  const { search, set } = useSourceSearch(source);
  const { endpoint, code, path = "", record } = search;
  const result = useLive<QuarantineGroups>(paths.quarantineGroups(source), [{ kind: "plan" }], PACE);
  const groups = result.data?.items ?? [];
  const isChosen = (group: QuarantineGroup) =>
    group.endpoint === endpoint && group.code === code && (group.expression ?? "") === path;
  // A count of a plan names the endpoint alone.
  const current = groups.find(isChosen) ?? groups.find((group) => group.endpoint === endpoint) ?? groups[0];
  return (
    <Split
      drawer={
        record !== undefined &&
        current && (
          <RecordDrawer
            key={record}
            source={source}
            endpoint={current.endpoint}
            id={record}
            onClose={() => set({ record: undefined })}
          />
        )
      }
    >
      <Panel title={text.groups} aside={<AskAgain source={source} groups={groups} />}>
        <Loaded result={result}>
          {({ items, countedMax, cut }) => (
            <>
              <Explanation countedMax={cut ? countedMax : undefined} />
              <Groups
                rows={items}
                live={result.live}
                selected={current}
                onOpen={(group) =>
                  set({
                    endpoint: group.endpoint,
                    code: group.code,
                    path: group.expression ?? undefined,
                    record: undefined,
                  })
                }
              />
            </>
          )}
        </Loaded>
      </Panel>
      {current && (
        <Records
          key={keyOf(current)}
          source={source}
          group={current}
          selected={record}
          onOpen={(id) =>
            set({
              endpoint: current.endpoint,
              code: current.code,
              path: current.expression ?? undefined,
              record: id,
            })
          }
        />
      )}
    </Split>
  );
}

function keyOf({ endpoint, code, expression }: QuarantineGroup): string {
  return `${endpoint} ${code} ${expression ?? ""}`;
}

/** An id that the source lists but does not return has no path. */
function useProblemText(): (of: Pick<QuarantineGroup, "code" | "expression">) => string {
  const text = useWords(quarantineWords);
  return ({ code, expression }) => (code === "MISSING_ID" && expression === null ? text.notReturned : text[code]);
}

function Explanation({ countedMax }: { countedMax: number | undefined }) {
  const text = useWords(quarantineWords);
  const { number } = useFormats();
  return (
    <p className={styles.note}>
      {text.explained} {countedMax !== undefined && text.cut(number(countedMax))}
    </p>
  );
}

/** Leads to the preview of the update that asks for them, where it is started. */
function AskAgain({ source, groups }: { source: string; groups: readonly QuarantineGroup[] }) {
  const text = useWords(quarantineWords);
  const endpoints = [...new Set(groups.map(({ endpoint }) => endpoint))];
  return endpoints.map((endpoint) => (
    <Link
      key={endpoint}
      to="/harvest/$source"
      params={{ source }}
      search={{ tab: "plan", endpoint, plans: "UPDATE", which: "quarantined" }}
      className={styles.action}
    >
      {endpoints.length === 1 ? text.askAgain : text.askAgainOf(endpoint)}
    </Link>
  ));
}

interface GroupsProps {
  rows: readonly QuarantineGroup[];
  live: string | undefined;
  selected: QuarantineGroup | undefined;
  onOpen(group: QuarantineGroup): void;
}

function Groups({ rows, live, selected, onOpen }: GroupsProps) {
  const text = useWords(quarantineWords);
  const shared = useWords(common);
  const problemText = useProblemText();
  const { number } = useFormats();
  return (
    <DataList
      label={text.groups}
      rows={rows}
      keyOf={keyOf}
      live={live}
      selected={selected && keyOf(selected)}
      onOpen={onOpen}
      empty={text.empty}
      columns={[
        {
          name: "problem",
          title: text.problem,
          width: "minmax(130px, 200px)",
          cell: (group) => <StateMark state="failed" label={problemText(group)} />,
        },
        {
          name: "path",
          title: text.path,
          width: "minmax(80px, 1fr)",
          cell: ({ expression }) => <code title={expression ?? undefined}>{expression}</code>,
        },
        {
          name: "records",
          title: text.records,
          width: "76px",
          align: "end",
          cell: ({ records }) => number(records),
        },
        {
          name: "endpoint",
          title: text.endpoint,
          width: "minmax(80px, 1fr)",
          wideOnly: true,
          cell: ({ endpoint }) => endpoint,
        },
        {
          name: "newest",
          title: text.newest,
          width: "110px",
          wideOnly: true,
          cell: ({ createdAt }) => <Time at={createdAt} relative />,
        },
        {
          name: "reason",
          title: shared.reason,
          width: "minmax(120px, 3fr)",
          wideOnly: true,
          cell: ({ reason }) => <span title={reason}>{reason}</span>,
        },
      ]}
    />
  );
}

interface RecordsProps {
  source: string;
  group: QuarantineGroup;
  selected: string | undefined;
  onOpen(id: string): void;
}

function Records({ source, group, selected, onOpen }: RecordsProps) {
  const text = useWords(quarantineWords);
  const shared = useWords(common);
  const problemText = useProblemText();
  const { endpoint, code, expression } = group;
  const result = useLiveList<Listed<QuarantinedRecord>>(
    (before) =>
      paths.quarantine({ source, endpoint, code, expression: expression ?? "", open: true, before, size: PAGE }),
    ({ next }) => next,
    [{ kind: "plan" }],
    PACE,
  );
  return (
    <Panel title={text.recordsOf([problemText(group), expression].filter(Boolean).join(" "))}>
      <Loaded result={result}>
        {(pages) => (
          <DataList
            label={text.records}
            rows={pages.flatMap(({ items }) => items)}
            keyOf={({ id }) => id}
            live={result.live}
            selected={selected}
            onOpen={({ id }) => onOpen(id)}
            onEnd={onEndOf(result)}
            empty={text.empty}
            columns={[
              {
                name: "key",
                title: text.key,
                width: "minmax(110px, 1fr)",
                cell: ({ key }) => (key === null ? text.noKey : <code title={key}>{key}</code>),
              },
              {
                name: "reason",
                title: shared.reason,
                width: "minmax(120px, 3fr)",
                cell: ({ reason }) => <span title={reason}>{reason}</span>,
              },
              {
                name: "time",
                title: text.quarantinedAt,
                width: "150px",
                wideOnly: true,
                cell: ({ createdAt }) => <Time at={createdAt} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

interface RecordDrawerProps {
  source: string;
  endpoint: string;
  id: string;
  onClose(): void;
}

/** Read by its id, so that a link to it does not depend on its place in the list. */
function RecordDrawer({ source, endpoint, id, onClose }: RecordDrawerProps) {
  const text = useWords(quarantineWords);
  const problemText = useProblemText();
  const before = /^\d{1,17}$/.test(id) ? String(BigInt(id) + 1n) : "0";
  const result = useLive<Listed<QuarantinedRecord>>(
    paths.quarantine({ source, endpoint, before, size: 1 }),
    [{ kind: "plan" }],
    PACE,
  );
  const found = result.data?.items.find((one) => one.id === id);
  return (
    <Drawer title={found?.key ?? text.noKey} onClose={onClose}>
      <Loaded result={result}>
        {() =>
          found === undefined ? (
            <Empty>{text.gone}</Empty>
          ) : (
            <>
              <p className={styles.error}>{found.reason}</p>
              <Fields
                rows={[
                  [text.problem, problemText(found)],
                  [text.path, found.expression !== null && <code key="path">{found.expression}</code>],
                  [text.state, found.resolved && <StateMark key="state" state="success" label={text.arrivedSince} />],
                  [text.endpoint, endpoint],
                  [text.slice, found.batch.slice],
                  [text.quarantinedAt, <Time key="at" at={found.createdAt} />],
                ]}
              />
              <section className={styles.section}>
                <h3>{text.fragment}</h3>
                <CodeText>{found.fragment}</CodeText>
              </section>
            </>
          )
        }
      </Loaded>
    </Drawer>
  );
}
