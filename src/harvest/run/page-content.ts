/** The records of a page, as they are stored: distinct by key, with what is quarantined beside them. */
import type { Page } from "../decode/index.ts";
import type { Quarantined } from "../store/records/batches.ts";
import type { IncomingRecord } from "../store/records/records.ts";

export interface PageContent {
  records: IncomingRecord[];
  quarantined: Quarantined[];
  /** Of what is quarantined: the key, or the content of an item without one. */
  quarantinedIds: string[];
  /** What the page consists of, in order: two pages with the same are one page. */
  order: string;
  /** The first and the last time of its records. */
  earliest: Date | undefined;
  latest: Date | undefined;
}

export function contentOf({ items }: Page): PageContent {
  const byKey = new Map<string, IncomingRecord>();
  const quarantined: Quarantined[] = [];
  const quarantinedIds: string[] = [];
  const order: string[] = [];
  let earliest: Date | undefined;
  let latest: Date | undefined;
  for (const decoded of items) {
    if ("quarantine" in decoded) {
      const { code, reason, expression, fragment, key } = decoded.quarantine;
      quarantined.push({ item_key: key, reason_code: code, reason, expression, fragment });
      quarantinedIds.push(key ?? fragment);
      order.push(key ?? fragment);
      continue;
    }
    const { key, dataJson, contentHash, sourceTime, providerVersion, deleted } = decoded;
    order.push(key);
    if (sourceTime && (!earliest || sourceTime < earliest)) earliest = sourceTime;
    if (sourceTime && (!latest || sourceTime > latest)) latest = sourceTime;
    const record: IncomingRecord = {
      item_key: key,
      content_hash: contentHash.toString("hex"),
      source_time: sourceTime,
      provider_version: providerVersion,
      deleted,
      data: dataJson,
    };
    const other = byKey.get(key);
    if (!other || !isOlder(record, other)) byKey.set(key, record);
  }
  return { records: [...byKey.values()], quarantined, quarantinedIds, order: order.join("\n"), earliest, latest };
}

/** Several rows of one id on a page are its versions; without times or versions the later row counts. */
function isOlder(one: IncomingRecord, other: IncomingRecord): boolean {
  const times = (one.source_time?.getTime() ?? 0) - (other.source_time?.getTime() ?? 0);
  if (times !== 0) return times < 0;
  return compareVersions(one.provider_version, other.provider_version) < 0;
}

/** Only whole numbers, such as `3` or `v3`, say which is newer: `1.10` may be 1.1, and a hash says nothing. So in store/records/records.ts. */
const VERSION = /^v?(\d{1,18})$/;

function compareVersions(one: string | null, other: string | null): number {
  const [left, right] = [one, other].map((version) => VERSION.exec(version ?? "")?.[1]);
  if (left === undefined || right === undefined) return 0;
  return Number(BigInt(left) - BigInt(right));
}
