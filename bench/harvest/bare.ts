/**
 * What somebody would write by hand: fetch, JSON.parse, the statement that stores new records, and a commit for each page. It
 * keeps no body, batch, count or position, limits nothing and computes no hash. Each loop has its own connection.
 */
import { Agent, fetch } from "undici";
import { type IncomingRecord, putRecords } from "../../src/harvest/store/records/records.ts";
import type { Db } from "../../src/kernel/data/db.ts";
import { DAYS, type Walk } from "./source.ts";

interface Works {
  message: {
    "total-results": number;
    "next-cursor": string;
    items: { DOI: string; deposited: { "date-time": string } }[];
  };
}

/** Of no endpoint. */
const ORIGIN = { endpointId: 0, planMonth: "2026-08-01", sliceId: "0", generation: 1, batchNo: 1 };
const NO_HASH = "0".repeat(32);

const agent = new Agent();

/** Answers the number of records. */
export async function bareHarvest(db: Db, baseUrl: string, walk: Walk, loops: number): Promise<number> {
  return inLists(walk, loops, (filter) =>
    eachPage(`${baseUrl}/works?rows=${walk.pageSize}${filter}`, async ({ items }) => {
      const records = items.map(recordOf);
      await db.tx((tx) => putRecords(tx, ORIGIN, records));
    }),
  );
}

function recordOf(item: Works["message"]["items"][number]): IncomingRecord {
  return {
    item_key: item.DOI,
    content_hash: NO_HASH,
    source_time: new Date(item.deposited["date-time"]),
    provider_version: null,
    deleted: false,
    data: JSON.stringify(item),
  };
}

async function eachPage(url: string, use: (page: Works["message"]) => Promise<void>): Promise<number> {
  let received = 0;
  for (let cursor = "*"; ; ) {
    const response = await fetch(`${url}&cursor=${encodeURIComponent(cursor)}`, { dispatcher: agent });
    const { message } = JSON.parse(await response.text()) as Works;
    await use(message);
    received += message.items.length;
    if (received >= message["total-results"] || message.items.length === 0) return received;
    cursor = message["next-cursor"];
  }
}

/** Reads every page and stores nothing: what the service can answer. */
export function readOnly(baseUrl: string, walk: Walk, loops: number): Promise<number> {
  return inLists(walk, loops, (filter) => eachPage(`${baseUrl}/works?rows=${walk.pageSize}${filter}`, async () => {}));
}

async function inLists({ byDay }: Walk, loops: number, list: (filter: string) => Promise<number>): Promise<number> {
  const left = byDay ? DAYS.map((day) => `&filter=from-update-date:${day},until-update-date:${day}`) : [""];
  const received = await Promise.all(
    Array.from({ length: loops }, async () => {
      let sum = 0;
      for (let filter = left.shift(); filter !== undefined; filter = left.shift()) sum += await list(filter);
      return sum;
    }),
  );
  return received.reduce((sum, count) => sum + count, 0);
}
