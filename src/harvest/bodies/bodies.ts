/**
 * The bodies of responses, by the SHA-256 of their bytes, so that a body that comes again is kept once. They are files of a
 * folder, or rows where there is none. A body is durable before the transaction that refers to it commits: after a crash there
 * may be a file that no batch names, but never a batch whose body is missing.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, brotliDecompress, constants } from "node:zlib";
import type { Queryable, Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { findBody, insertBody } from "../store/records/bodies.ts";
import { openBodyFolder } from "./folder.ts";

export interface Bodies {
  /** Call it before the transaction of the batch, and `commitIn` inside it. */
  prepare(bytes: Buffer): Promise<PreparedBody>;
  /** The bytes, checked against their hash; nothing if there is no such body. */
  get(hash: string): Promise<Buffer | undefined>;
  /** Removes what killed processes left half-written; answers the number of files. Call it at the start. */
  removeLeftovers(): Promise<number>;
}

export interface PreparedBody {
  /** SHA-256 of the uncompressed bytes, in hex. */
  hash: string;
  commitIn(tx: Tx): Promise<void>;
}

export interface BodiesDeps {
  /** The folder. Without it bodies are rows. */
  dir: string | undefined;
  db: Queryable;
  clock: Clock;
  ids: Pick<Ids, "uuid">;
}

const HASH = /^[0-9a-f]{64}$/;
/** The largest response that a definition may permit. */
const BODY_BYTES_MAX = 1_073_741_824;

const compressed = promisify(brotliCompress);
const decompressed = promisify(brotliDecompress);

export function createBodies({ dir, db, clock, ids }: BodiesDeps): Bodies {
  const folder = dir === undefined ? undefined : openBodyFolder({ dir, clock, ids });

  return {
    async prepare(bytes) {
      const hash = hashOf(bytes);
      if (folder) {
        if (!(await folder.has(hash))) await folder.write(hash, await compress(bytes));
        return { hash, commitIn: async () => {} };
      }
      const content = await compress(bytes);
      return { hash, commitIn: (tx) => insertBody(tx, hash, content) };
    },
    async get(hash) {
      if (!HASH.test(hash)) return undefined;
      // A folder may have been configured after some bodies were stored as rows.
      const content = (await folder?.read(hash)) ?? (await findBody(db, hash));
      if (!content) return undefined;
      const bytes = await decompressed(content, { maxOutputLength: BODY_BYTES_MAX });
      if (hashOf(bytes) !== hash) throw new Error(`the body ${hash} is damaged: its bytes have another hash`);
      return bytes;
    },
    removeLeftovers: async () => folder?.removeLeftovers() ?? 0,
  };
}

/** Not in another thread: 0.6 ms for a megabyte, and 2 ms with the copy that a thread needs. */
function hashOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** In a thread of the pool, 6 ms for a megabyte of JSON. */
function compress(bytes: Buffer): Promise<Buffer> {
  return compressed(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
}
