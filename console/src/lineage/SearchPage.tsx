/** Finds assets by the words of their names and of what is said of them; without words, lists them by kind. */
import { Link, useNavigate } from "@tanstack/react-router";
import { onEndOf, useLive, useLiveList } from "../api/live.ts";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { type Column, DataList } from "../parts/page/DataList.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import {
  ASSETS,
  ASSETS_PACE,
  type Asset,
  KINDS,
  type Listed,
  type ListedAsset,
  paths,
  type SearchReply,
} from "./api.ts";
import { KindMark } from "./KindMark.tsx";
import { nearPlaceOf, placeOf } from "./kinds.ts";
import { LineagePage } from "./LineagePage.tsx";
import styles from "./lineage.module.css";
import { searchRoute } from "./routes.ts";
import { lineage } from "./words.ts";

const FOUND_MAX = 100;
const PAGE = 500;

export function SearchPage() {
  const text = useWords(lineage);
  const search = searchRoute.useSearch();
  const navigate = useNavigate();
  const set = (change: Partial<typeof search>) =>
    void navigate({ to: "/lineage", search: { ...search, ...change }, replace: true });
  const { q = "", kind, mode = "text", dropped } = search;
  return (
    <LineagePage title={text.title} tenant={search.tenant} onTenant={(tenant) => set({ tenant })}>
      {(tenant) => (
        <>
          <div className={styles.bar}>
            <Filter label={text.searchHint} value={q} onChange={(next) => set({ q: next || undefined })} />
            <Select
              label={text.kind}
              value={kind ?? ""}
              options={[
                ["", q === "" ? text.TABLE : text.anyKind],
                ...KINDS.filter((one) => q !== "" || one !== "TABLE").map((one) => [one, text[one]] as const),
              ]}
              onChange={(next) => set({ kind: next || undefined })}
            />
            {q !== "" && (
              <>
                <Select
                  label={text.mode}
                  value={mode}
                  options={[
                    ["text", text.byWords],
                    ["hybrid", text.byMeaning],
                  ]}
                  onChange={(next) => set({ mode: next === "text" ? undefined : next })}
                />
                <Select
                  label={text.droppedAssets}
                  value={dropped ?? ""}
                  options={[
                    ["", text.withoutDropped],
                    ["true", text.withDropped],
                  ]}
                  onChange={(next) => set({ dropped: next || undefined })}
                />
              </>
            )}
          </div>
          {q.trim() === "" ? (
            <Browse tenant={tenant} kind={kind ?? "TABLE"} />
          ) : (
            <Found
              query={{ tenant, q, kind, mode, dropped, limit: FOUND_MAX }}
              onClear={() => set({ kind: undefined })}
            />
          )}
        </>
      )}
    </LineagePage>
  );
}

interface FoundProps {
  query: Readonly<Record<string, string | number | undefined>> & { tenant: string };
  /** Without the kind, for which there may be no match. */
  onClear(): void;
}

function Found({ query, onClear }: FoundProps) {
  const text = useWords(lineage);
  const result = useLive<SearchReply>(paths.search(query), ASSETS, ASSETS_PACE);
  return (
    <Loaded result={result}>
      {({ items, notice }) => (
        <>
          {notice !== null && <p className={styles.soft}>{notice}</p>}
          {items.length === FOUND_MAX && <p className={styles.soft}>{text.bestOnly(FOUND_MAX)}</p>}
          <Assets
            tenant={query.tenant}
            items={items}
            live={result.live}
            {...(query["kind"] !== undefined && { onClear })}
            last={{
              name: "matched",
              title: text.matched,
              width: "minmax(120px, 2fr)",
              wideOnly: true,
              cell: ({ matched }) => {
                const [best] = matched.filter(({ field }) => !["name", "fullName", "meaning"].includes(field));
                return best && <span title={best.snippet}>{best.snippet}</span>;
              },
            }}
          />
        </>
      )}
    </Loaded>
  );
}

function Browse({ tenant, kind }: { tenant: string; kind: string }) {
  const text = useWords(lineage);
  const result = useLiveList<Listed<ListedAsset>>(
    (cursor) => paths.assets({ tenant, kind, cursor, limit: PAGE }),
    ({ next }) => next,
    ASSETS,
    ASSETS_PACE,
  );
  return (
    <Loaded result={result}>
      {(pages) => (
        <Assets
          tenant={tenant}
          items={pages.flatMap(({ items }) => items)}
          live={result.live}
          onEnd={onEndOf(result)}
          last={{
            name: "owner",
            title: text.owner,
            width: "minmax(100px, 1fr)",
            wideOnly: true,
            cell: ({ owner }) => owner,
          }}
        />
      )}
    </Loaded>
  );
}

interface AssetsProps<Item extends Asset & { isDropped?: boolean }> {
  tenant: string;
  items: readonly Item[];
  live: string | undefined;
  onEnd?: (() => void) | undefined;
  onClear?(): void;
  last: Column<Item>;
}

function Assets<Item extends Asset & { isDropped?: boolean }>({
  tenant,
  items,
  live,
  onEnd,
  last,
  ...filters
}: AssetsProps<Item>) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const navigate = useNavigate();
  return (
    <Panel>
      <DataList
        label={text.assets}
        rows={items}
        keyOf={({ id }) => id}
        live={live}
        onOpen={({ id }) =>
          void navigate({ to: "/lineage/assets/$assetId", params: { assetId: id }, search: { tenant } })
        }
        onEnd={onEnd}
        {...filters}
        empty={text.noAssets}
        columns={[
          { name: "kind", title: text.kind, width: "104px", cell: ({ kind }) => <KindMark kind={kind} /> },
          {
            name: "name",
            title: shared.name,
            width: "minmax(120px, 2fr)",
            cell: ({ id, name, isDropped }) => (
              <>
                <Link to="/lineage/assets/$assetId" params={{ assetId: id }} search={{ tenant }} title={name}>
                  {name}
                </Link>
                {isDropped === true && (
                  <>
                    {" "}
                    <span className={styles.droppedMark}>{text.dropped}</span>
                  </>
                )}
              </>
            ),
          },
          {
            name: "place",
            title: text.place,
            width: "minmax(120px, 2fr)",
            wideOnly: true,
            cell: (asset) => <span title={placeOf(asset)}>{nearPlaceOf(asset)}</span>,
          },
          {
            name: "description",
            title: text.description,
            width: "minmax(100px, 2fr)",
            wideOnly: true,
            cell: ({ description }) => <span title={description ?? ""}>{description}</span>,
          },
          last,
        ]}
      />
    </Panel>
  );
}
