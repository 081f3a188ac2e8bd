/** Control over HTTP, for tests and a demo that drive a simulator in another process: its requests, faults and records. */
import { isRecord } from "../../kernel/json/is-record.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { Faults } from "./faults.ts";
import type { Mutations } from "./mutations.ts";
import type { RecordStore, TimeField } from "./records.ts";
import type { ControlRequest } from "./server.ts";
import type { Answer } from "./source.ts";
import type { Traffic } from "./traffic.ts";

const TIME_FIELDS: readonly TimeField[] = ["created", "updated", "indexed", "published"];

export function createControl({
  faults,
  traffic,
  store,
  mutations,
}: {
  faults: Faults;
  traffic: Traffic;
  store: RecordStore;
  mutations: Mutations;
}): (request: ControlRequest) => Answer {
  const routes: Record<string, (request: ControlRequest) => unknown> = {
    "GET requests": () => traffic.summary(),
    "DELETE requests": () => {
      traffic.reset();
      return traffic.summary();
    },
    "GET faults": () => faults.table(),
    "POST faults"({ body }) {
      faults.set(objectIn(body));
      return faults.table();
    },
    "DELETE faults": () => {
      faults.clear();
      return faults.table();
    },
    "GET records"({ query }) {
      const by = TIME_FIELDS.find((field) => field === (query.get("by") ?? "updated"));
      if (by === undefined) throw new RangeError(`\`by\` is one of ${TIME_FIELDS.join(", ")}.`);
      return {
        records: store.expected({ from: query.get("from") ?? undefined, to: query.get("to") ?? undefined, by }),
      };
    },
    "POST records": ({ body }) => ({ records: mutations.apply(objectIn(body)) }),
  };
  return (request) => {
    const route = routes[`${request.method} ${request.path}`];
    if (!route) return json(404, { error: `There is no ${request.method} /_simulator/${request.path}.` });
    try {
      return json(200, route(request));
    } catch (error) {
      return json(400, { error: messageOf(error) });
    }
  };
}

function objectIn(body: string): Record<string, unknown> {
  const value: unknown = JSON.parse(body);
  if (!isRecord(value)) throw new RangeError("The body is not a JSON object.");
  return value;
}

function json(status: number, value: unknown): Answer {
  return { status, type: "application/json", body: JSON.stringify(value) };
}
