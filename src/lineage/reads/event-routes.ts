/** The API of stored events and dead letters, newest first. */
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { errors } from "../../kernel/http/schemas.ts";
import type { Http } from "../../kernel/http/server.ts";
import { eventAfter, eventCursor, eventReply } from "./events.ts";
import * as schemas from "./schemas.ts";
import type { EventFilter, Scanned } from "./store/events.ts";
import { deadLetters, eventsNaming, storedEvent, storedEvents } from "./stored-events.ts";
import { readTenant } from "./tenant.ts";
import { warningsOf } from "./warnings.ts";

export function eventReadRoutes(api: Http, db: Db): void {
  const read = { scope: "lineage:read" } as const;
  const tags = ["lineage"];

  api.get(
    "/events",
    {
      config: read,
      schema: {
        tags,
        summary: "Stored events, the newest first",
        querystring: schemas.EventsQuery,
        response: { 200: schemas.EventsReply, ...errors(400, 404) },
      },
    },
    async ({ caller, query }) => {
      const { asset, jobNamespace, job, run = null, kind = null, type = null, state = null, limit } = query;
      const tenantId = await readTenant(db, caller, query.tenant);
      const after = afterIn(query.cursor);
      const [from, to] = [timeIn(query.from), timeIn(query.to)];
      if (asset !== undefined) {
        if (job ?? jobNamespace ?? run ?? kind ?? type ?? state) {
          throw invalid("With `asset`, only `from` and `to` can be asked for as well");
        }
        return pageOf(await eventsNaming(db, tenantId, asset, { after, from, to }, limit));
      }
      if ((job === undefined) !== (jobNamespace === undefined)) {
        throw invalid("A job is named by `jobNamespace` and `job` together");
      }
      const named = job === undefined || jobNamespace === undefined ? null : { namespace: jobNamespace, name: job };
      const filter = { run, job: named, kind, eventType: type, state, from, to, after };
      return pageOf(await storedEvents(db, tenantId, filter, limit));
    },
  );

  api.get(
    "/dead-letters",
    {
      config: read,
      schema: {
        tags,
        summary: "Events that could not be applied, the newest first, each with the reason",
        querystring: schemas.DeadLettersQuery,
        response: { 200: schemas.EventsReply, ...errors(400, 404) },
      },
    },
    async ({ caller, query: { tenant, limit, cursor } }) => {
      const tenantId = await readTenant(db, caller, tenant);
      return pageOf(await deadLetters(db, tenantId, afterIn(cursor), limit));
    },
  );

  api.get(
    "/events/:id",
    {
      config: read,
      schema: {
        tags,
        summary: "Show an event with its body",
        params: schemas.IdParams,
        querystring: schemas.TenantQuery,
        response: { 200: schemas.EventReply, ...errors(400, 404) },
      },
    },
    async ({ caller, params: { id }, query: { tenant } }) => {
      const tenantId = await readTenant(db, caller, tenant);
      const row = await storedEvent(db, tenantId, id);
      const warnings = await warningsOf(db, tenantId, row);
      return { ...eventReply(row), warnings, body: row.body, event: JSON.parse(row.body) as unknown };
    },
  );
}

function pageOf({ rows, end }: Scanned) {
  return { items: rows.map(eventReply), next: end ? eventCursor(end) : null };
}

function afterIn(cursor: string | undefined): EventFilter["after"] {
  const after = cursor === undefined ? null : eventAfter(cursor);
  if (cursor !== undefined && !after) throw invalid("The parameter `cursor` is none that a page had as `next`");
  return after;
}

/** A `+` that was not encoded arrives as a space in a query string. */
function timeIn(text: string | undefined): string | null {
  return text === undefined ? null : text.replace(" ", "+");
}
