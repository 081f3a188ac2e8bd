/** The use cases of subscriptions. A secret is never shown again; a signing key is shown once, when it is made. */
import { type Actor, audit } from "../kernel/auth/audit.ts";
import { auditedChanges } from "../kernel/auth/audited-changes.ts";
import type { Db, Queryable } from "../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../kernel/data/dry-run.ts";
import { ApiError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { InUse } from "../kernel/in-use.ts";
import { differences } from "../kernel/json/differences.ts";
import { shownUrl } from "../kernel/net/outbound.ts";
import { unknownName } from "../kernel/unknown-name.ts";
import { type WebhooksHints, webhooksError } from "./catalogue.ts";
import { RETRY_NUM_DEFAULT } from "./delivery/retries.ts";
import { type Attempt, type SendDeps, send } from "./delivery/send.ts";
import { testPayload } from "./events.ts";
import type { SealedSecrets } from "./secrets/sealed-secrets.ts";
import { parseSecret, type Secret } from "./secrets/secret.ts";
import { makeSigningKey } from "./secrets/signing.ts";
import type { WebhooksSettings } from "./settings.ts";
import { dropUnusedEndpoint, enableEndpoint, ensureEndpoint, rotateKey } from "./store/endpoints.ts";
import {
  deleteSubscription,
  findSame,
  insertSubscription,
  listSubscriptions,
  lockSubscription,
  nextSubscriptionId,
  readSubscription,
  type SubscriptionFields,
  type SubscriptionFilter,
  type SubscriptionRow,
  type SubscriptionView,
  subscriptionOfKpi,
  targetRow,
  updateSubscription,
} from "./store/subscriptions.ts";

/** The fields that a caller sends. In a change, absent fields stay as they are. */
export interface SubscriptionInput {
  kpiId?: string;
  callbackUrl?: string;
  /** `Type,Key,Value`; null for none. */
  secret?: string | null;
  retryNum?: number;
  status?: "0" | "1";
  teamName?: string;
  userId?: string;
}
export type NewSubscription = SubscriptionInput & { kpiId: string; callbackUrl: string };

export interface Saved {
  subscription: SubscriptionView;
  /** Null unless its endpoint is new. */
  signingKey: string | null;
}

/** The indicators that exist. */
export interface KpiNames {
  /** Those of the names that exist. */
  existing(names: readonly string[]): Promise<readonly string[]>;
  /** All names, to find a similar one. */
  all(): Promise<readonly string[]>;
}

export interface Subscriptions {
  /** Without it, the indicators of subscriptions are not checked. */
  connectKpis(kpis: KpiNames): void;
  /** The one that has this KPI, callback and team already is answered as it is. */
  create(input: NewSubscription, actor: Actor, options?: DryRun): Promise<Saved & { created: boolean }>;
  update(id: number, input: SubscriptionInput, actor: Actor, options?: DryRun): Promise<Saved>;
  get(id: number): Promise<SubscriptionView>;
  list(filter: SubscriptionFilter, page: { size: number; offset: number }): ReturnType<typeof listSubscriptions>;
  remove(id: number, actor: Actor, options?: DryRun): Promise<SubscriptionView>;
  /** Gives its endpoint a new signing key; the previous one still signs for `rotationHours`. */
  rotate(id: number, actor: Actor): Promise<{ signingKey: string; previousUntil: Date }>;
  /** Sends a TEST event now, once, and answers the result. */
  test(id: number, actor: Actor): Promise<Attempt>;
}

export interface SubscriptionsDeps extends SendDeps {
  db: Db;
  hints: WebhooksHints;
  ids: Ids;
  sealedSecrets: SealedSecrets;
  settings: WebhooksSettings;
  inUse?: InUse;
}

export function createSubscriptions(deps: SubscriptionsDeps): Subscriptions {
  const { db, hints, ids, sealedSecrets, settings, clock } = deps;
  let kpis: KpiNames | undefined;
  deps.inUse?.add(async (tx, what, name) => {
    const one = what === "indicator" ? await subscriptionOfKpi(tx, name) : undefined;
    return one && `subscription ${one.id} to ${shownUrl(one.callback_url)}`;
  });

  async function refuseUnknown(kpiId: string): Promise<void> {
    if (!kpis || (await kpis.existing([kpiId])).length > 0) return;
    throw unknownName({ field: "kpiId", what: "indicator", name: kpiId }, await kpis.all());
  }

  async function get(queryable: Queryable, id: number): Promise<SubscriptionView> {
    const row = await readSubscription(queryable, id);
    if (!row) throw webhooksError("SUBSCRIPTION_NOT_FOUND", { id });
    return row;
  }

  function secretFields(id: number, text: string | null) {
    if (text === null) return { secret: null, secret_type: null, secret_key: null };
    const secret = parseSecret(text);
    return { secret: sealedSecrets.sealSecret(id, secret), secret_type: secret.type, secret_key: secret.key };
  }

  /** Throws if a field that was sent differs. */
  function refuseOther(present: SubscriptionRow, input: NewSubscription): void {
    const secret = present.secret === null ? null : sealedSecrets.tryOpen(present.id, present.secret);
    const pairs: [name: string, is: unknown, sent: unknown][] = [
      ["retryNum", present.retry_num, input.retryNum],
      ["status", present.status, input.status],
      ["userId", present.user_id, input.userId],
      ["secret", secret, input.secret && textOf(parseSecret(input.secret))],
    ];
    const other = pairs.filter(([, is, sent]) => sent !== undefined && sent !== is).map(([name]) => name);
    if (other.length === 0) return;
    throw webhooksError(
      "SUBSCRIPTION_EXISTS",
      { id: present.id },
      { fields: other.map((name) => `\`${name}\``).join(", ") },
    );
  }

  /** Creates the endpoint if there is none; answers its key if it did, unless the key will be rolled back. */
  async function ensure(tx: Queryable, fields: SubscriptionFields, { dryRun }: DryRun): Promise<string | null> {
    const { callback_url, team_name } = fields;
    const key = makeSigningKey(ids);
    const sealed = sealedSecrets.sealKey(callback_url, team_name, key);
    return (await ensureEndpoint(tx, callback_url, team_name, sealed)) && !dryRun ? key : null;
  }

  return {
    async create(input, actor, options = FOR_REAL) {
      await refuseTogether([
        () => checkCallbackUrl(input.callbackUrl),
        () => refuseUnknown(input.kpiId),
        () => void (input.secret && parseSecret(input.secret)),
      ]);
      const id = await nextSubscriptionId(db);
      const fields: SubscriptionFields = {
        kpi_id: input.kpiId,
        callback_url: input.callbackUrl,
        retry_num: input.retryNum ?? RETRY_NUM_DEFAULT,
        status: input.status ?? "1",
        team_name: input.teamName ?? "",
        user_id: input.userId ?? "",
        ...secretFields(id, input.secret ?? null),
      };
      return transact(db, options, async (tx) => {
        const signingKey = await ensure(tx, fields, options); // It also locks the endpoint, so the next look is the last.
        const present = await findSame(tx, fields);
        if (present) {
          refuseOther(present, input);
          return { subscription: await get(tx, present.id), signingKey: null, created: false };
        }
        await insertSubscription(tx, id, fields);
        if (fields.status === "1") await enableEndpoint(tx, fields.callback_url, fields.team_name);
        await audit(tx, actor, "subscription.create", String(id), shown(fields));
        hints.changed(tx, "subscription", String(id));
        return { subscription: await get(tx, id), signingKey, created: true };
      });
    },

    async update(id, input, actor, options = FOR_REAL) {
      if (input.callbackUrl !== undefined) checkCallbackUrl(input.callbackUrl);
      if (input.kpiId !== undefined) await refuseUnknown(input.kpiId);
      const secret = input.secret === undefined ? {} : secretFields(id, input.secret);
      return transact(db, options, async (tx) => {
        const before = await lockSubscription(tx, id);
        if (!before) throw webhooksError("SUBSCRIPTION_NOT_FOUND", { id });
        const fields: SubscriptionFields = {
          ...before,
          kpi_id: input.kpiId ?? before.kpi_id,
          callback_url: input.callbackUrl ?? before.callback_url,
          retry_num: input.retryNum ?? before.retry_num,
          status: input.status ?? before.status,
          team_name: input.teamName ?? before.team_name,
          user_id: input.userId ?? before.user_id,
          ...secret,
        };
        const moved = fields.callback_url !== before.callback_url || fields.team_name !== before.team_name;
        const signingKey = moved ? await ensure(tx, fields, options) : null;
        const same = moved || fields.kpi_id !== before.kpi_id ? await findSame(tx, fields) : undefined;
        if (same) throw webhooksError("SUBSCRIPTION_EXISTS", { id: same.id }, { fields: "id" });
        await updateSubscription(tx, id, fields);
        if (moved) await dropUnusedEndpoint(tx, before.callback_url, before.team_name);
        if (fields.status === "1" && (moved || input.status !== undefined)) {
          await enableEndpoint(tx, fields.callback_url, fields.team_name);
        }
        const changes = auditedChanges(differences(shown(before), shown(fields)));
        const details = {
          ...shown(fields),
          ...changes,
          ...(input.secret === undefined ? {} : { secretChanged: true }),
        };
        await audit(tx, actor, "subscription.update", String(id), details);
        hints.changed(tx, "subscription", String(id));
        return { subscription: await get(tx, id), signingKey };
      });
    },

    connectKpis: (connected) => {
      kpis = connected;
    },
    get: (id) => get(db, id),
    list: (filter, page) => listSubscriptions(db, filter, page),

    remove: (id, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        await lockSubscription(tx, id);
        const row = await get(tx, id);
        await deleteSubscription(tx, id);
        await dropUnusedEndpoint(tx, row.callback_url, row.team_name);
        await audit(tx, actor, "subscription.delete", String(id), shown(row));
        hints.changed(tx, "subscription", String(id));
        return row;
      }),

    rotate: (id, actor) =>
      db.tx(async (tx) => {
        const { callback_url: url, team_name: team } = await get(tx, id);
        const signingKey = makeSigningKey(ids);
        const sealed = sealedSecrets.sealKey(url, team, signingKey);
        const previousUntil = await rotateKey(tx, { url, team }, sealed, settings.rotationHours);
        if (!previousUntil) throw webhooksError("SUBSCRIPTION_NOT_FOUND", { id }); // Deleted since it was read.
        await audit(tx, actor, "subscription.rotate", String(id));
        hints.changed(tx, "subscription", String(id));
        return { signingKey, previousUntil };
      }),

    async test(id, actor) {
      const row = await targetRow(db, id);
      if (!row) throw webhooksError("SUBSCRIPTION_NOT_FOUND", { id });
      const { kpi_id } = await get(db, id);
      await audit(db, actor, "subscription.test", String(id));
      const payload = testPayload(kpi_id, new Date(clock.now()).toISOString());
      return send(deps, sealedSecrets.target([row]), { id: ids.uuid(), payload }, new AbortController().signal);
    },
  };
}

/** Throws what the first of the checks throws; its details have the other refusals, so that a form can show them all at once. */
async function refuseTogether(checks: readonly (() => void | Promise<void>)[]): Promise<void> {
  const refused: ApiError[] = [];
  for (const check of checks) {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refused.push(error);
    }
  }
  const [first, ...others] = refused;
  if (!first) return;
  if (others.length > 0) first.details["others"] = others.map(({ code, message }) => ({ code, error: message }));
  throw first;
}

/** As it is sealed. */
function textOf({ type, key, value }: Secret): string {
  return [type, key, value].join(",");
}

/** For the audit log. */
function shown({ kpi_id, callback_url, retry_num, status, team_name }: Omit<SubscriptionFields, "secret">) {
  return { kpiId: kpi_id, callbackUrl: callback_url, retryNum: retry_num, status, teamName: team_name };
}

function checkCallbackUrl(text: string): void {
  const refuse = (reason: string) => webhooksError("CALLBACK_URL_INVALID", {}, { reason });
  if (!URL.canParse(text)) throw refuse("it is not a URL; write it in full, as in https://host/path");
  const { protocol, username, password } = new URL(text);
  if (protocol !== "http:" && protocol !== "https:") throw refuse("only http and https URLs are called");
  if (username !== "" || password !== "") {
    throw refuse(
      "it has a user or password, which every list would show; put them into `secret` as `Header,Authorization,Basic ...`",
    );
  }
}
