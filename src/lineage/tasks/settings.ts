/** The settings under `lineage.tasks` in `millrace.yaml`. */
import { type Static, Type } from "typebox";

/**
 * A variable of the environment that tenants may name in `credentialRef`, and the one origin it is sent to: else whoever may
 * choose a tenant's model could have any secret of this process sent to a server of their own.
 */
const CredentialSettings = Type.Object(
  {
    name: Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 124 }),
    origin: Type.String({ pattern: "^https?://[^/]+$", maxLength: 512 }),
  },
  { additionalProperties: false },
);
export type CredentialSettings = Static<typeof CredentialSettings>;

export const TasksSettings = Type.Object(
  {
    /** How many tasks of one tenant, model and type go to the model together. */
    batchSize: Type.Integer({ minimum: 1, maximum: 2_048, default: 64 }),
    /** How many batches one process works on at the same time, */
    batches: Type.Integer({ minimum: 1, maximum: 256, default: 4 }),
    /** and how many of those for one tenant. */
    perTenant: Type.Integer({ minimum: 1, maximum: 256, default: 2 }),
    /** After so long without a sign of the process that holds them, tasks are taken back. */
    claimSeconds: Type.Integer({ minimum: 2, maximum: 3_600, default: 20 }),
    /** For one call of a model, from the look-up of the name to the end of the answer. */
    timeoutSeconds: Type.Integer({ minimum: 1, maximum: 600, default: 30 }),
    /** How long tasks that have succeeded, and batches, are kept. */
    keepDays: Type.Integer({ minimum: 1, maximum: 3_650, default: 30 }),
    /** What tenants may name in `credentialRef`. */
    credentials: Type.Array(CredentialSettings, { maxItems: 100, default: [] }),
  },
  { additionalProperties: false, default: {} },
);
export type TasksSettings = Static<typeof TasksSettings>;
