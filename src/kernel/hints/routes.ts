/** The route of the stream of hints. */
import { Type } from "typebox";
import { ANY_SCOPE, isAnonymous } from "../http/authenticate.ts";
import { Body, errors } from "../http/schemas.ts";
import { type Http, identityOf } from "../http/server.ts";
import type { HintStreams } from "./stream.ts";

const REV = /^\d{1,20}$/;

export function hintRoutes(http: Http, streams: HintStreams): void {
  http.get(
    "/events",
    {
      config: { scope: ANY_SCOPE },
      exposeHeadRoute: false, // The stream does not end.
      schema: {
        tags: ["server"],
        summary: "Stream which entities have changed, as server-sent events: what to fetch again, without its data",
        querystring: Body({
          after: Type.Optional(
            Type.String({
              pattern: REV.source,
              description:
                "The `millrace-rev` of a reply, or the id of the last event: begin after it. `Last-Event-ID` comes first.",
            }),
          ),
        }),
        response: {
          200: {
            description:
              "Events `changes` with `{rev, changes: [{kind, id, rev}]}` (an id `*` means all of the kind), `gap` if hints were missed and everything is to be fetched again, and `heartbeat` every 15 s.",
            content: { "text/event-stream": { schema: Type.Unknown() } }, // OpenAPI 3.1 cannot describe the events of a stream.
          },
          ...errors(400, 429, 503),
        },
      },
    },
    async (request, reply) => {
      const given = request.headers["last-event-id"] ?? request.query.after;
      await streams.send(reply, {
        caller: request.caller,
        identity: identityOf(request),
        who: isAnonymous(request.caller) ? "This address" : "This key",
        after: typeof given === "string" && REV.test(given) ? BigInt(given) : undefined,
        accessEnds: request.accessEnds(),
      });
      return reply;
    },
  );
}
