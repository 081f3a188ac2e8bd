/**
 * Finds the values of credentials when they are used. A definition only refers to them: to an environment variable of the
 * process, or to a named secret. A value has a version that grows when its keyed hash changes, so a batch can say which value it
 * was fetched with. Without MILLRACE_SECRET_KEY there is no hash, and the version stays 0.
 */
import type { Environment } from "../../kernel/config/read-settings.ts";
import type { Db } from "../../kernel/data/db.ts";
import { OperatorError } from "../../kernel/errors.ts";
import type { SecretBox } from "../../kernel/secrets/cipher.ts";
import type { NamedSecrets, OpenedSecret } from "../../kernel/secrets/named-secrets.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import * as store from "../store/sources/credentials.ts";

/** `missing` is a sentence that says what to do. */
export type Credential = { id: number; value: string; version: number } | { missing: string };

export interface ShownCredential extends Pick<store.CredentialRow, "kind" | "reference" | "version"> {
  name: string;
  /** When its version grew last. */
  changedAt: Date | null;
  /** Whether this process finds its value. */
  present: boolean;
}

export interface Credentials {
  /** The value. A change takes effect within CACHE_MS; with `isNew`, which reads it again, at once. */
  resolve(source: string, name: string, options?: { isNew: boolean }): Promise<Credential>;
  list(source: string): Promise<ShownCredential[]>;
}

/** So that a page does not cost a query. */
export const CACHE_MS = 5_000;
const CACHED_MAX = 1_000;
/** Values are masked in whatever a source answers. A short one would be found by chance. */
const VALUE_LENGTH_MIN = 8;

export interface CredentialsDeps {
  db: Db;
  env: Environment;
  secrets: Pick<NamedSecrets, "open">;
  box: Pick<SecretBox, "digest">;
  clock: Clock;
}

export function createCredentials({ db, env, secrets, box, clock }: CredentialsDeps): Credentials {
  const cached = new Map<string, { until: number; credential: Promise<Credential> }>();

  async function find(source: string, name: string): Promise<Credential> {
    const row = await store.findCredential(db, source, name);
    if (!row) return { missing: `The source ${source} has no credential \`${name}\`.` };
    const found = await valueOf(row);
    if ("trouble" in found)
      return { missing: `The credential \`${name}\` of ${source} has no value: ${found.trouble}` };
    if (found.value.length < VALUE_LENGTH_MIN) {
      const why = `its value has fewer than ${VALUE_LENGTH_MIN} characters, and masking it would mask parts of records`;
      return { missing: `The credential \`${name}\` of ${source} cannot be used: ${why}.` };
    }
    return { id: row.credential_id, value: found.value, version: await versionOf(source, row, found.value) };
  }

  async function valueOf({ kind, reference }: store.CredentialRow): Promise<OpenedSecret> {
    if (kind === "secret") {
      const opened = (await secrets.open([reference])).get(reference);
      return opened ?? { trouble: `there is no secret ${reference}. Create it with \`millrace secrets set\`.` };
    }
    const value = Object.hasOwn(env, reference) ? env[reference] : undefined;
    return value ? { value } : { trouble: `the environment variable ${reference} of this process is not set.` };
  }

  async function versionOf(source: string, row: store.CredentialRow, value: string): Promise<number> {
    const hash = hashOf(`harvest.reg_prov_credential:${source}:${row.credential_name}`, value);
    if (hash === undefined || hash === row.value_hash) return row.version;
    const counted = await store.countNewValue(db, row.credential_id, hash);
    return counted ?? (await store.findCredential(db, source, row.credential_name))?.version ?? row.version;
  }

  function hashOf(place: string, value: string): string | undefined {
    try {
      return box.digest(value, place);
    } catch (error) {
      if (error instanceof OperatorError) return undefined;
      throw error;
    }
  }

  return {
    resolve(source, name, { isNew } = { isNew: false }) {
      const key = `${source} ${name}`;
      const now = clock.now();
      const known = cached.get(key);
      if (known && now < known.until && !isNew) return known.credential;
      if (cached.size >= CACHED_MAX) cached.clear();
      const credential = find(source, name);
      cached.set(key, { until: now + CACHE_MS, credential });
      // A failure of the database is not an answer.
      credential.catch(() => {
        if (cached.get(key)?.credential === credential) cached.delete(key);
      });
      return credential;
    },

    async list(source) {
      const rows = await store.listCredentials(db, source);
      return Promise.all(
        rows.map(async (row) => ({
          name: row.credential_name,
          kind: row.kind,
          reference: row.reference,
          version: row.version,
          changedAt: row.checked_at,
          present: "value" in (await valueOf(row)),
        })),
      );
    },
  };
}
