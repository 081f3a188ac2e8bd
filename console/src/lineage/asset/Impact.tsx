/** Who breaks if this goes: everything downstream, the nearest first, with the way to each; the same list as CSV and JSON. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useLive } from "../../api/live.ts";
import { Icon } from "../../parts/controls/icons.tsx";
import { Filter, Select } from "../../parts/controls/Select.tsx";
import { type Column, DataList } from "../../parts/page/DataList.tsx";
import { Loaded, Panel } from "../../parts/page/Page.tsx";
import { Time } from "../../parts/times/Time.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { wordFor } from "../../words/table.ts";
import { useWords } from "../../words/words.ts";
import { type Affected, ASSETS, ASSETS_PACE, type ImpactReply, KINDS, paths } from "../api.ts";
import { KindMark } from "../KindMark.tsx";
import { placeOf } from "../kinds.ts";
import styles from "../lineage.module.css";
import { lineage } from "../words.ts";
import type { AssetViewProps } from "./AssetPage.tsx";

export function Impact({ tenant, asset, search, set }: AssetViewProps) {
  const text = useWords(lineage);
  const query = { tenant, node: asset.id };
  const result = useLive<ImpactReply>(paths.impact(query), ASSETS, ASSETS_PACE);
  const file = `impact-${asset.name}`;
  return (
    <Loaded result={result}>
      {({ items, partial }) => (
        <>
          <Summary name={asset.name} items={items} isPartial={partial} />
          <div className={styles.bar}>
            <Filter label={text.findAffected} value={search.q ?? ""} onChange={(q) => set({ q: q || undefined })} />
            <Select
              label={text.kind}
              value={search.kind ?? ""}
              options={[
                ["", text.anyKind],
                ...KINDS.filter((kind) => items.some((one) => one.kind === kind)).map(
                  (kind) => [kind, text[kind]] as const,
                ),
              ]}
              onChange={(kind) => set({ kind: kind || undefined })}
            />
            <span className={styles.end}>
              <a href={paths.impact({ ...query, format: "csv" })} download={`${file}.csv`} className={styles.export}>
                <Icon name="download" /> CSV
              </a>
              <a href={paths.impact(query)} download={`${file}.json`} className={styles.export}>
                <Icon name="download" /> JSON
              </a>
            </span>
          </div>
          <AffectedList
            tenant={tenant}
            items={items}
            q={search.q ?? ""}
            kind={search.kind}
            name={asset.name}
            live={result.live}
            onClear={() => set({ q: undefined, kind: undefined })}
          />
        </>
      )}
    </Loaded>
  );
}

function Summary({ name, items, isPartial }: { name: string; items: readonly Affected[]; isPartial: boolean }) {
  const text = useWords(lineage);
  const { number } = useFormats();
  const depth = Math.max(0, ...items.map(({ distance }) => distance));
  const counts = KINDS.flatMap((kind) => {
    const count = items.filter((one) => one.kind === kind).length;
    return count === 0 ? [] : [`${text[kind]} ${number(count)}`];
  });
  return (
    <p className={styles.pair} role="status">
      <b>
        {items.length === 0 ? text.nothingBreaks(name) : text.breaks(name, items.length, number(items.length), depth)}
      </b>
      <span className={styles.soft}>{counts.join(" · ")}</span>
      {isPartial && <span>{text.cutBySize}</span>}
    </p>
  );
}

interface AffectedListProps {
  tenant: string;
  items: readonly Affected[];
  q: string;
  kind: string | undefined;
  name: string;
  live: string | undefined;
  onClear(): void;
}

function AffectedList({ tenant, items, q, kind, name, live, onClear }: AffectedListProps) {
  const text = useWords(lineage);
  const navigate = useNavigate();
  const wanted = q.trim().toLowerCase();
  const rows = items.filter(
    (one) =>
      (kind === undefined || one.kind === kind) &&
      (wanted === "" || `${one.fullName} ${one.owner ?? ""}`.toLowerCase().includes(wanted)),
  );
  const open = (id: string) =>
    ({ to: "/lineage/assets/$assetId", params: { assetId: id }, search: { tenant } }) as const;
  const columnCells: readonly Column<Affected>[] = [
    {
      name: "column",
      title: text.COLUMN,
      width: "minmax(80px, 1fr)",
      cell: (one) => one.kind === "COLUMN" && <Link {...open(one.id)}>{one.name}</Link>,
    },
    {
      name: "transformation",
      title: text.transformation,
      width: "minmax(90px, 1fr)",
      wideOnly: true,
      cell: ({ transformations }) =>
        transformations
          .map(({ subtype, type }) => wordFor(text, `transformation_${subtype ?? type}`, subtype ?? type))
          .join(", "),
    },
  ];
  const lastRun: Column<Affected> = {
    name: "last",
    title: text.lastRun,
    width: "110px",
    wideOnly: true,
    cell: ({ lastRunAt }) => lastRunAt && <Time at={lastRunAt} relative />,
  };
  return (
    <Panel>
      <DataList
        label={text.impactOf(name)}
        rows={rows}
        keyOf={({ id }) => id}
        live={live && `${live} ${kind ?? ""} ${wanted}`}
        onOpen={({ id }) => void navigate(open(id))}
        empty={text.nothingDepends}
        {...(items.length > 0 && { onClear })}
        columns={[
          { name: "distance", title: text.distance, width: "64px", align: "end", cell: ({ distance }) => distance },
          {
            name: "kind",
            title: text.kind,
            width: "100px",
            wideOnly: true,
            cell: (one) => <KindMark kind={one.kind} />,
          },
          {
            name: "asset",
            title: text.asset,
            width: "minmax(130px, 2fr)",
            cell: (one) => {
              const whole = one.kind === "COLUMN" ? placeOf(one) : one.fullName;
              return (
                <Link {...open(one.id)} title={whole}>
                  {one.kind === "COLUMN" ? (one.path.at(-2) ?? whole) : one.name}
                </Link>
              );
            },
          },
          ...(items.some((one) => one.kind === "COLUMN") ? columnCells : []),
          {
            name: "via",
            title: text.via,
            width: "minmax(120px, 2fr)",
            wideOnly: true,
            cell: ({ via }) => (
              <span title={via.join(" → ")}>{via.map((one) => one.split(/[./]/).at(-1)).join(" → ")}</span>
            ),
          },
          {
            name: "owner",
            title: text.owner,
            width: "minmax(90px, 1fr)",
            wideOnly: true,
            cell: ({ owner }) => <span title={owner ?? ""}>{owner}</span>,
          },
          ...(items.some(({ lastRunAt }) => lastRunAt !== null) ? [lastRun] : []),
        ]}
      />
    </Panel>
  );
}
