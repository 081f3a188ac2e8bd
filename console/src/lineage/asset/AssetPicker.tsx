/** Chooses an asset by a part of its name. */
import { useState } from "react";
import { useLive } from "../../api/live.ts";
import { Filter } from "../../parts/controls/Select.tsx";
import { useWords } from "../../words/words.ts";
import { type Asset, paths, type SearchReply } from "../api.ts";
import { KindMark } from "../KindMark.tsx";
import { hasLineage, nearPlaceOf } from "../kinds.ts";
import styles from "../lineage.module.css";
import { lineage } from "../words.ts";

const SHOWN_MAX = 12;

interface AssetPickerProps {
  tenant: string;
  label: string;
  /** It cannot be chosen. */
  except: string;
  onPick(asset: Asset): void;
}

export function AssetPicker({ tenant, label, except, onPick }: AssetPickerProps) {
  const text = useWords(lineage);
  const [q, setQ] = useState("");
  const wanted = q.trim();
  const { data } = useLive<SearchReply>(
    wanted === "" ? undefined : paths.search({ tenant, q: wanted, limit: 2 * SHOWN_MAX }),
  );
  const found = (wanted === "" ? [] : (data?.items ?? []))
    .filter(({ id, kind }) => id !== except && hasLineage(kind))
    .slice(0, SHOWN_MAX);
  return (
    <div className={styles.picker}>
      <Filter label={label} value={q} onChange={setQ} />
      {wanted !== "" && data && found.length === 0 && <p className={styles.soft}>{text.noAssets}</p>}
      {found.length > 0 && (
        <ul className={styles.options} aria-label={label}>
          {found.map((asset) => (
            <li key={asset.id}>
              <button
                type="button"
                onClick={() => {
                  setQ("");
                  onPick(asset);
                }}
              >
                <KindMark kind={asset.kind} />
                <b>{asset.name}</b>
                <span className={styles.soft}>{nearPlaceOf(asset)}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
