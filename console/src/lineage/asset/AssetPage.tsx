/** One asset: facts, graph, impact, path to another asset, and the events that mention it. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useLive } from "../../api/live.ts";
import { isInPlace } from "../../app/search-values.ts";
import { Tabs } from "../../parts/controls/Tabs.tsx";
import { Loaded } from "../../parts/page/Page.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useWords } from "../../words/words.ts";
import { type AssetDetail, paths } from "../api.ts";
import { KindMark } from "../KindMark.tsx";
import { hasLineage } from "../kinds.ts";
import { LineagePage, useTenant } from "../LineagePage.tsx";
import styles from "../lineage.module.css";
import { type AssetSearch, assetRoute } from "../routes.ts";
import { lineage } from "../words.ts";
import { AssetOverview } from "./AssetOverview.tsx";
import { Explorer } from "./Explorer.tsx";
import { History } from "./History.tsx";
import { Impact } from "./Impact.tsx";
import { Paths } from "./Paths.tsx";

export interface AssetViewProps {
  tenant: string;
  asset: AssetDetail;
  search: AssetSearch;
  /** Changes the address. */
  set(change: AssetSearch): void;
}

export function AssetPage() {
  const { assetId } = assetRoute.useParams();
  // Keyed by asset: nothing of the previous asset stays selected.
  return <AssetPageOf key={assetId} assetId={assetId} />;
}

function AssetPageOf({ assetId }: { assetId: string }) {
  const search = assetRoute.useSearch();
  const navigate = useNavigate();
  const { tenant } = useTenant(search.tenant);
  const result = useLive<AssetDetail>(tenant === undefined ? undefined : paths.asset(tenant, assetId), [
    { kind: "asset", id: assetId },
  ]);
  const asset = result.data?.id === assetId ? result.data : undefined;
  const set = (change: AssetSearch) =>
    void navigate({
      to: "/lineage/assets/$assetId",
      params: { assetId },
      search: (before: AssetSearch) => ({ ...before, ...change }),
      replace: isInPlace(search, change, "node", "list", "event"),
    });
  return (
    <LineagePage
      title={asset?.name ?? assetId}
      aside={asset && <KindMark kind={asset.kind} />}
      tenant={tenant}
      onTenant={(next) => void navigate({ to: "/lineage", search: { tenant: next } })}
    >
      {(shownTenant) => (
        <Loaded result={result}>
          {() => asset && <AssetBody tenant={shownTenant} asset={asset} search={search} set={set} />}
        </Loaded>
      )}
    </LineagePage>
  );
}

function AssetBody(view: AssetViewProps) {
  const text = useWords(lineage);
  const { asset, search, tenant } = view;
  const isDropped = asset.droppedAt !== null;
  const isLinked = hasLineage(asset.kind) && !isDropped;
  const tabs = [
    { name: "overview", title: text.overview },
    ...(isLinked
      ? [
          { name: "graph", title: text.graph },
          { name: "impact", title: text.impact },
          { name: "path", title: text.path },
        ]
      : []),
    { name: "history", title: text.history },
  ];
  const tab = tabs.find(({ name }) => name === search.tab)?.name ?? "overview";
  return (
    <>
      <nav className={styles.crumbs} aria-label={text.place}>
        {asset.parents.map(({ id, name }) => (
          <Link key={id} to="/lineage/assets/$assetId" params={{ assetId: id }} search={{ tenant }}>
            {name}
          </Link>
        ))}
        <span>{asset.name}</span>
      </nav>
      {isDropped && <Dropped tenant={tenant} asset={asset} />}
      <Tabs tabs={tabs} current={tab} label={text.parts} />
      {tab === "overview" && <AssetOverview {...view} />}
      {tab === "graph" && <Explorer {...view} />}
      {tab === "impact" && <Impact {...view} />}
      {tab === "path" && <Paths {...view} />}
      {tab === "history" && <History {...view} />}
    </>
  );
}

function Dropped({ tenant, asset: { id, droppedAt, droppedBy } }: Pick<AssetViewProps, "tenant" | "asset">) {
  const text = useWords(lineage);
  return (
    <p className={styles.dropped} role="status">
      <b>
        {text.droppedOn} <Time at={droppedAt} />
      </b>
      {droppedBy?.jobName && (
        <Link
          to="/lineage/assets/$assetId"
          params={{ assetId: id }}
          search={{ tenant, tab: "history", event: droppedBy.id }}
        >
          {text.droppedBy(droppedBy.jobName)}
        </Link>
      )}
      <span className={styles.soft}>{text.droppedShows}</span>
    </p>
  );
}
