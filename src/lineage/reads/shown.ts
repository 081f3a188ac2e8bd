/** How assets and their owners are shown in replies. */
import { isRecord } from "../../kernel/json/is-record.ts";
import { type AssetName, type NodeKind, ownName } from "../graph/names.ts";
import type { AssetRow } from "./store/assets.ts";

export interface ShownAsset {
  id: string;
  kind: NodeKind;
  /** Its own name, without its parents. */
  name: string;
  fullName: string;
  path: string[];
  description: string | null;
  owner: string | null;
}

/** With its parents. The origin and the hash of a statement mean nothing to a person, so they are left out. */
export function fullName({ kind, path }: AssetName): string {
  if (kind === "SQL" || kind === "JOB") return path.slice(0, 2).join("/");
  const parts = path.length === 1 ? path : path.slice(1);
  return parts.filter((part) => part !== "").join(".");
}

export function shown(row: AssetRow): ShownAsset {
  const { id, kind, path, description, owners } = row;
  return { id, kind, name: ownName(row), fullName: fullName(row), path, description, owner: ownerOf(owners) };
}

/** Producers write a name, a list of names, or a list of objects with a name. */
function ownerOf(owners: AssetRow["owners"]): string | null {
  const names = (Array.isArray(owners) ? owners : [owners]).flatMap((owner: unknown) => {
    const name = isRecord(owner) ? owner["name"] : owner;
    return typeof name === "string" && name !== "" ? [name] : [];
  });
  return names.length === 0 ? null : names.join(", ");
}
