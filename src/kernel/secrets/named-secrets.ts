/**
 * Secrets that are stored under a name and used by that name (`${secrets.NAME}` in the nodes of a chain). They can be replaced
 * and deleted but not read back: only the process that uses one decrypts it, when it uses it.
 */

import type { Db, Queryable } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import type { DoctorCheck } from "../doctor.ts";
import { kernelError, OperatorError } from "../errors.ts";
import type { Hints } from "../hints/hints.ts";
import type { KERNEL_HINTS } from "../hints/kinds.ts";
import type { InUse } from "../in-use.ts";
import { counted } from "../text/sentences.ts";
import { orUnavailable, type SecretBox } from "./cipher.ts";

/** A secret without its value. */
export interface NamedSecretRow {
  name: string;
  created_at: Date;
  updated_at: Date;
  updated_by: string;
}

/** `trouble` is a sentence that says why the secret cannot be decrypted. */
export type OpenedSecret = { value: string } | { trouble: string };

export interface NamedSecrets {
  list(): Promise<NamedSecretRow[]>;
  set(tx: Queryable, secret: { name: string; value: string; by: string }): Promise<NamedSecretRow>;
  remove(tx: Queryable, name: string): Promise<NamedSecretRow>;
  /** Omits names that do not exist. Not cached, so that a replaced secret takes effect at once. */
  open(names: readonly string[]): Promise<ReadonlyMap<string, OpenedSecret>>;
}

export const SECRET_NAME = "[A-Za-z_][A-Za-z0-9_]{0,127}";
/** A shorter value is easily guessed, and masking it in a node's output would mask too much. */
export const SECRET_LENGTH_MIN = 4;
/** Enough for a certificate with its chain. */
export const SECRET_LENGTH_MAX = 32_768;
export const SECRETS_MAX = 1_000;

const COLUMNS = "name, created_at, updated_at, updated_by";
const LIST = statement<NamedSecretRow>(
  "kernel.secrets.list",
  `select ${COLUMNS} from kernel.named_secret order by name limit ${SECRETS_MAX}`,
);
// Two concurrent inserts may exceed the limit by one, which does no harm.
const SET = statement<NamedSecretRow>(
  "kernel.secrets.set",
  `insert into kernel.named_secret (name, sealed, updated_by)
   select $1, $2, $3 where exists (select from kernel.named_secret where name = $1)
                        or (select count(*) from kernel.named_secret) < ${SECRETS_MAX}
   on conflict (name) do update set sealed = excluded.sealed, updated_at = now(), updated_by = excluded.updated_by
   returning ${COLUMNS}`,
);
const REMOVE = statement<NamedSecretRow>(
  "kernel.secrets.remove",
  `delete from kernel.named_secret where name = $1 returning ${COLUMNS}`,
);
const READ = statement<{ name: string; sealed: string }>(
  "kernel.secrets.read",
  "select name, sealed from kernel.named_secret where name = any($1)",
);

export interface NamedSecretsDeps {
  db: Db;
  box: SecretBox;
  hints: Hints<typeof KERNEL_HINTS>;
  inUse?: Pick<InUse, "by">;
}

export function createNamedSecrets({ db, box, hints, inUse }: NamedSecretsDeps): NamedSecrets {
  return {
    list: () => db.rows(LIST, []),
    async set(tx, { name, value, by }) {
      const sealed = orUnavailable(() => box.seal(value, placeOf(name)));
      const [row] = await tx.rows(SET, [name, sealed, by]);
      if (!row) throw kernelError("SECRETS_FULL", { limit: SECRETS_MAX });
      hints.changed(tx, "secret", name);
      return row;
    },
    async remove(tx, name) {
      const [row] = await tx.rows(REMOVE, [name]);
      if (!row) throw kernelError("SECRET_NOT_FOUND", { name });
      const because = await inUse?.by(tx, "secret", name);
      if (because !== undefined) throw kernelError("SECRET_IN_USE", { name }, { because });
      hints.changed(tx, "secret", name);
      return row;
    },
    async open(names) {
      const rows = await db.rows(READ, [names]);
      return new Map(rows.map(({ name, sealed }) => [name, opened(box, name, sealed)]));
    },
  };
}

export function secretsCheck(secrets: NamedSecrets): DoctorCheck {
  return {
    name: "secrets",
    async look() {
      const names = (await secrets.list()).map(({ name }) => name);
      const closed = [...(await secrets.open(names))].filter(([, secret]) => "trouble" in secret);
      const [example] = closed;
      if (!example) return { verdict: "ok", found: openedInWords(names.length) };
      return {
        verdict: "broken",
        found: `${closed.length} of ${counted(names.length, "secret")} cannot be opened, such as \`${example[0]}\`.`,
        advice:
          "Start with the MILLRACE_SECRET_KEY that they were sealed under, or set them again: `millrace secrets set`.",
      };
    },
  };
}

function openedInWords(count: number): string {
  if (count === 0) return "There are no secrets.";
  return count === 1 ? "The only secret can be opened." : `All ${count} secrets can be opened.`;
}

function placeOf(name: string): string {
  return `kernel.named_secret:${name}`;
}

function opened(box: SecretBox, name: string, sealed: string): OpenedSecret {
  try {
    return { value: box.open(sealed, placeOf(name)) };
  } catch (error) {
    if (error instanceof OperatorError) return { trouble: error.message };
    throw error;
  }
}
