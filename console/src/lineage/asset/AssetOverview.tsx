/** What is known of an asset: facts, columns or what lies in it, and what lies directly before and after it. */
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { onEndOf, useLiveList } from "../../api/live.ts";
import { CodeText } from "../../parts/page/CodeText.tsx";
import { type Column, DataList } from "../../parts/page/DataList.tsx";
import { Fields } from "../../parts/page/Fields.tsx";
import { Loaded, Panel } from "../../parts/page/Page.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import {
  ASSETS,
  ASSETS_PACE,
  type AssetColumn,
  type AssetDetail,
  type Listed,
  type ListedAsset,
  paths,
} from "../api.ts";
import { KindMark } from "../KindMark.tsx";
import { hasLineage } from "../kinds.ts";
import styles from "../lineage.module.css";
import { lineage } from "../words.ts";
import type { AssetViewProps } from "./AssetPage.tsx";
import { Neighbours } from "./Neighbours.tsx";

const PAGE = 200;
/** They have a place of their own. */
const SHOWN_ELSEWHERE = new Set(["description", "content", "position"]);

export function AssetOverview({ tenant, asset, search, set }: AssetViewProps) {
  const text = useWords(lineage);
  const { number } = useFormats();
  const neighbours = (direction: "up" | "down") => (
    <Neighbours
      tenant={tenant}
      assetId={asset.id}
      direction={direction}
      q={search[direction] ?? ""}
      onFilter={(q) => set({ [direction]: q })}
    />
  );
  return (
    <div className={styles.columns}>
      <div className={styles.stack}>
        <Panel title={text.facts}>
          <Facts tenant={tenant} asset={asset} />
        </Panel>
        {asset.columns.length > 0 && (
          <Panel title={text.columnsOf(`${number(asset.columns.length)}${asset.hasMoreColumns ? "+" : ""}`)}>
            <Columns tenant={tenant} columns={asset.columns} isDropped={asset.droppedAt !== null} />
            {asset.hasMoreColumns && <p className={styles.padded}>{text.moreColumns}</p>}
          </Panel>
        )}
        {asset.children.length > 0 && (
          <Panel title={text.contains}>
            <Children tenant={tenant} parent={asset.id} />
          </Panel>
        )}
      </div>
      {hasLineage(asset.kind) && asset.droppedAt === null && (
        <div className={styles.stack}>
          <Panel title={asset.kind === "TABLE" ? text.writtenBy : text.upstream}>{neighbours("up")}</Panel>
          <Panel title={asset.kind === "TABLE" ? text.readBy : text.downstream}>{neighbours("down")}</Panel>
        </div>
      )}
    </div>
  );
}

function Facts({ tenant, asset }: { tenant: string; asset: AssetDetail }) {
  const text = useWords(lineage);
  const { number } = useFormats();
  const statement = asset.attributes["content"];
  return (
    <div className={`${styles.padded} ${styles.section}`}>
      <Fields
        rows={[
          [text.fullName, <code key="name">{asset.fullName}</code>],
          [text.description, longText(asset.description)],
          [text.summary, longText(asset.summary?.text ?? null)],
          [
            text.tags,
            asset.tags.length === 0 ? null : (
              <span key="tags" className={styles.pair}>
                {asset.tags.map(({ id, name }) => (
                  <Link key={id} to="/lineage/assets/$assetId" params={{ assetId: id }} search={{ tenant }}>
                    {name}
                  </Link>
                ))}
              </span>
            ),
          ],
          [text.runs, asset.executions === 0 ? null : number(asset.executions)],
          [text.lastRun, asset.lastExecutionAt && <Time key="run" at={asset.lastExecutionAt} />],
          [text.firstSeen, <Time key="first" at={asset.firstSeenAt} />],
          [text.lastSeen, asset.lastSeenAt && <Time key="last" at={asset.lastSeenAt} />],
          [text.otherNames, asset.otherNames === 0 ? null : asset.otherNames],
          ...Object.entries(asset.attributes)
            .filter(([name]) => !SHOWN_ELSEWHERE.has(name))
            .map(([name, value]) => [name, longText(valueText(value))] as const),
        ]}
      />
      {typeof statement === "string" && <CodeText>{statement}</CodeText>}
    </div>
  );
}

const LONG_CHARACTERS = 1_000;
/** A producer may send a text of megabytes, which must not push away all that follows. The box scrolls, so the keyboard must reach it. */
function longText(value: string | null): ReactNode {
  if (value === null || value.length <= LONG_CHARACTERS) return value;
  return (
    <div key="long" className={styles.long} tabIndex={0}>
      {value}
    </div>
  );
}

/** Producers write texts, lists and objects; owners are a list of `{name}`. */
function valueText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map((one: unknown) => nameIn(one) ?? valueText(one)).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}

function nameIn(value: unknown): string | undefined {
  const name = typeof value === "object" && value !== null && "name" in value ? value.name : undefined;
  return typeof name === "string" ? name : undefined;
}

interface ColumnsProps {
  tenant: string;
  columns: readonly AssetColumn[];
  /** With their table, so that they have no impact. */
  isDropped: boolean;
}

function Columns({ tenant, columns, isDropped }: ColumnsProps) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const navigate = useNavigate();
  const searchOf = { tenant, tab: "impact" };
  const impact: Column<AssetColumn> = {
    name: "impact",
    title: "",
    width: "64px",
    align: "end",
    cell: ({ id, name }) => (
      <Link
        to="/lineage/assets/$assetId"
        params={{ assetId: id }}
        search={searchOf}
        aria-label={text.impactOf(name)}
        tabIndex={-1}
      >
        {text.impact}
      </Link>
    ),
  };
  return (
    <DataList
      label={text.columns}
      rows={columns}
      keyOf={({ id }) => id}
      onOpen={({ id }) =>
        void navigate({ to: "/lineage/assets/$assetId", params: { assetId: id }, search: { tenant } })
      }
      columns={[
        {
          name: "name",
          title: shared.name,
          width: "minmax(120px, 2fr)",
          cell: ({ id, name }) => (
            <Link to="/lineage/assets/$assetId" params={{ assetId: id }} search={{ tenant }}>
              {name}
            </Link>
          ),
        },
        {
          name: "type",
          title: text.type,
          width: "minmax(80px, 1fr)",
          cell: ({ attributes }) => valueText(attributes["dataType"] ?? attributes["type"]),
        },
        {
          name: "description",
          title: text.description,
          width: "minmax(80px, 2fr)",
          wideOnly: true,
          cell: ({ attributes }) => valueText(attributes["description"] ?? attributes["comment"]),
        },
        ...(isDropped ? [] : [impact]),
      ]}
    />
  );
}

/** All of them: a schema may hold thousands of tables. */
function Children({ tenant, parent }: { tenant: string; parent: string }) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const navigate = useNavigate();
  const result = useLiveList<Listed<ListedAsset>>(
    (cursor) => paths.assets({ tenant, parent, cursor, limit: PAGE }),
    ({ next }) => next,
    ASSETS,
    ASSETS_PACE,
  );
  return (
    <Loaded result={result}>
      {(pages) => (
        <DataList
          label={text.contains}
          rows={pages.flatMap(({ items }) => items)}
          keyOf={({ id }) => id}
          live={result.live}
          onEnd={onEndOf(result)}
          onOpen={({ id }) =>
            void navigate({ to: "/lineage/assets/$assetId", params: { assetId: id }, search: { tenant } })
          }
          columns={[
            { name: "kind", title: text.kind, width: "104px", cell: ({ kind }) => <KindMark kind={kind} /> },
            {
              name: "name",
              title: shared.name,
              width: "minmax(120px, 1fr)",
              cell: ({ id, name }) => (
                <Link to="/lineage/assets/$assetId" params={{ assetId: id }} search={{ tenant }} title={name}>
                  {name}
                </Link>
              ),
            },
          ]}
        />
      )}
    </Loaded>
  );
}
