/** The routes of rate gates: operators declare the limits of services and see their state. */
import { Type } from "typebox";
import { audit } from "../auth/audit.ts";
import { auditedChanges } from "../auth/audited-changes.ts";
import type { Db, Queryable } from "../data/db.ts";
import { transact } from "../data/dry-run.ts";
import { invalid } from "../errors.ts";
import { actionPath } from "../http/action-path.ts";
import { Body, DryRunQuery, errors, NoBody, NoQuery } from "../http/schemas.ts";
import { actorOf, type Http } from "../http/server.ts";
import { differences } from "../json/differences.ts";
import { faultOf, GateKey, GateLimits } from "./declaration.ts";
import type { GateRow } from "./declaration-store.ts";
import { Gate, gateReply } from "./gate-reply.ts";
import type { Gates } from "./gates.ts";

const Key = Body({ key: GateKey });
export function gateRoutes(http: Http, { db, gates }: { db: Db; gates: Gates }): void {
  const config = { scope: "admin" } as const;
  const tags = ["admin"];

  async function one(tx: Queryable, key: string): Promise<GateRow> {
    const [row] = await gates.describe([key], tx);
    if (!row) throw new Error(`gate ${key} was written and is not there`);
    return row;
  }

  http.get(
    "/gates",
    {
      config,
      schema: {
        tags,
        summary: "List the rate gates of services, with their limits and state",
        querystring: NoQuery,
        response: { 200: Type.Object({ items: Type.Array(Gate) }) },
      },
    },
    async () => ({ items: (await gates.describe()).map(gateReply) }),
  );

  http.put(
    "/gates/:key",
    {
      config,
      schema: {
        tags,
        summary: "Declare the limits of a service, or change them; they take effect at once",
        params: Key,
        querystring: DryRunQuery,
        body: Body(GateLimits),
        response: { 200: Gate, ...errors(400, 409) },
      },
    },
    async (request) => {
      const { key } = request.params;
      const limits = request.body;
      const fault = faultOf(limits);
      if (fault !== undefined) throw invalid(fault);
      return transact(db, request.query, async (tx) => {
        const [before] = await gates.describe([key], tx);
        await gates.declare(tx, [{ key, ...limits }]);
        const after = await one(tx, key);
        const changes = before && auditedChanges(differences(declaredOf(before), declaredOf(after)));
        await audit(tx, actorOf(request), "gate.declare", key, { ...limits, ...changes });
        return gateReply(after);
      });
    },
  );

  http.post(
    actionPath("/gates/:key", "open"),
    {
      config,
      schema: {
        tags,
        summary: "End the cooldown of a gate, restore its declared rate and forget limits from headers",
        params: Key,
        querystring: DryRunQuery,
        body: NoBody,
        response: { 200: Gate, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { key } = request.params;
      return transact(db, request.query, async (tx) => {
        await gates.open(tx, key);
        await audit(tx, actorOf(request), "gate.open", key, {});
        return gateReply(await one(tx, key));
      });
    },
  );

  http.delete(
    "/gates/:key",
    {
      config,
      schema: {
        tags,
        summary:
          "Withdraw the limits of a service; its gate has those of a source that declares it, or lets one request a second through",
        params: Key,
        querystring: DryRunQuery,
        response: { 200: Gate, ...errors(400, 404) },
      },
    },
    async (request) => {
      const { key } = request.params;
      return transact(db, request.query, async (tx) => {
        await gates.undeclare(tx, key);
        await audit(tx, actorOf(request), "gate.undeclare", key, {});
        return gateReply(await one(tx, key));
      });
    },
  );
}

/** What was declared of a gate, without its state. */
function declaredOf(row: GateRow): object {
  const { declaredBy, ratePerSec, burst, concurrency, warmupSec, floorPerSec, cutFactor, riseAfterSec, quotas } =
    gateReply(row);
  const limits = { declaredBy, ratePerSec, burst, concurrency, warmupSec, floorPerSec, cutFactor, riseAfterSec };
  const quotaLimits = quotas.map(({ unit, windowSec, limit, heldBack }) => ({ unit, windowSec, limit, heldBack }));
  return { ...limits, quotas: quotaLimits };
}
