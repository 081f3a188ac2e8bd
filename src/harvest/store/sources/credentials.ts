/** SQL of credentials: where their values are found, and which version the value is. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

export interface CredentialRow {
  credential_id: number;
  credential_name: string;
  kind: "env" | "secret";
  reference: string;
  version: number;
  value_hash: string | null;
  checked_at: Date | null;
}

const COLUMNS = "credential_id, credential_name, kind, reference, version, value_hash, checked_at";
const FIND = statement<CredentialRow>(
  "harvest.credential.find",
  `select ${COLUMNS} from harvest.reg_prov_credential where provenance_code = $1 and credential_name = $2`,
);

export async function findCredential(db: Queryable, source: string, name: string): Promise<CredentialRow | undefined> {
  return (await db.rows(FIND, [source, name]))[0];
}

const LIST = statement<CredentialRow>(
  "harvest.credential.list",
  `select ${COLUMNS} from harvest.reg_prov_credential where provenance_code = $1 order by credential_name`,
);

export function listCredentials(db: Queryable, source: string): Promise<CredentialRow[]> {
  return db.rows(LIST, [source]);
}

const OF_SECRET = statement<{ source: string; credential: string }>(
  "harvest.credential.of_secret",
  `select provenance_code as source, credential_name as credential from harvest.reg_prov_credential
   where kind = 'secret' and reference = $1 order by 1, 2 limit 1`,
);

/** A credential whose value is this secret. */
export async function sourceOfSecret(tx: Queryable, secret: string) {
  return (await tx.rows(OF_SECRET, [secret]))[0];
}

// Of several processes that see a new value, one counts it; the others wait for its row and then find the hash equal.
const NEW_VALUE = statement<{ version: number }>(
  "harvest.credential.new_value",
  `update harvest.reg_prov_credential set version = version + 1, value_hash = $2, checked_at = now()
   where credential_id = $1 and value_hash is distinct from $2
   returning version`,
);

/** The version of the new value; undefined if another process has counted it, or the credential is gone. */
export async function countNewValue(db: Queryable, credentialId: number, hash: string): Promise<number | undefined> {
  return (await db.rows(NEW_VALUE, [credentialId, hash]))[0]?.version;
}
