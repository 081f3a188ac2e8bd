/**
 * A small Trino for tests: its client protocol over real HTTP, with Postgres to compute the results. Queries are queued, run
 * and return their rows in pages; the last page may be requested again, but no earlier one; a DELETE ends the query.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "../src/kernel/data/db.ts";
import { createTrinoBackend, type TrinoOutcome } from "./trino-backend.ts";

export interface TestTrino {
  url: string;
  /** Its requests, in order. */
  requests: TrinoRequest[];
  /** The queries that were ended by a DELETE, by their statements. */
  cancelled: string[];
  /** The queries that run now. */
  running(): string[];
  /** Applies these faults, in order, to the next requests of this method instead of answering them. */
  disturb(method: string, ...faults: Fault[]): void;
  /** Changes the URLs in answers. */
  rewriteNextUri(rewrite: (uri: string) => string): void;
  stop(): Promise<void>;
}

export interface TrinoRequest {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
}

export type Fault = (response: ServerResponse) => void;

interface Options {
  connection: Connection;
  /** The required `authorization` header; unset, none is required. */
  authorization?: string;
  /** Unset: a free one. */
  port?: number;
  tls?: { cert: string; key: string };
}

interface Query {
  id: string;
  slug: string;
  statement: string;
  token: number;
  lastPage: string;
  rowsSent: number;
  work: Promise<void> | undefined;
  isOver: boolean;
  outcome: TrinoOutcome | undefined;
  cancel: () => Promise<unknown>;
}

const ROWS_PER_PAGE = 1_500;
const LONG_POLL_MS = 20;

export async function startTrino({ connection, authorization, port = 0, tls }: Options): Promise<TestTrino> {
  const backend = createTrinoBackend(connection);
  const queries = new Map<string, Query>();
  const requests: TrinoRequest[] = [];
  const cancelled: string[] = [];
  const faults: { method: string; fault: Fault }[] = [];
  let rewrite = (uri: string) => uri;
  let url = "";

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const { method = "", url: path = "", headers } = request;
    requests.push({ method, path, headers, body: await text(request) });
    const disturbance = faults.findIndex((fault) => fault.method === method);
    if (disturbance >= 0) return faults.splice(disturbance, 1)[0]?.fault(response);
    if (authorization !== undefined && headers.authorization !== authorization) {
      return response.writeHead(401, { "content-type": "text/plain" }).end("Access Denied: Invalid credentials\n");
    }
    if (method === "POST" && path === "/v1/statement") return submit(requests.at(-1), response);
    const [, phase, id = "", slug, token] =
      /^\/v1\/statement\/(queued|executing)\/(\w+)\/(\w+)\/(\d+)$/.exec(path) ?? [];
    const query = queries.get(id);
    if (!query || query.slug !== slug)
      return response.writeHead(404, { "content-type": "text/plain" }).end("Query not found");
    if (method === "DELETE") return end(query, response);
    // The client may not have received the last page.
    if (Number(token) === query.token - 1 && query.lastPage !== "") return reply(response, query.lastPage);
    if (Number(token) !== query.token) return response.writeHead(410).end();
    return reply(response, phase === "queued" ? dequeue(query) : await pageOf(query));
  }

  function submit(request: TrinoRequest | undefined, response: ServerResponse): unknown {
    if (request?.headers["x-trino-user"] === undefined) return response.writeHead(400).end("User must be set");
    const query: Query = {
      id: `q_${randomUUID().replaceAll("-", "")}`,
      slug: `y${randomUUID().replaceAll("-", "")}`,
      statement: request.body,
      token: 1,
      lastPage: "",
      rowsSent: 0,
      work: undefined,
      isOver: false,
      outcome: undefined,
      cancel: async () => {},
    };
    queries.set(query.id, query);
    return reply(response, page(query, "QUEUED", { nextUri: address("queued", query) }));
  }

  /** A query starts when its client polls it, not when it is posted. */
  function dequeue(query: Query): string {
    query.work ??= compute(query);
    query.token += 1;
    query.lastPage = page(query, "QUEUED", { nextUri: address("executing", query) });
    return query.lastPage;
  }

  async function compute(query: Query): Promise<void> {
    const outcome = await backend.run(query.statement, (cancel) => {
      query.cancel = cancel;
    });
    query.isOver = true;
    query.outcome ??= outcome;
  }

  async function pageOf(query: Query): Promise<string> {
    await Promise.race([query.work, sleep(LONG_POLL_MS)]);
    query.token += 1;
    query.lastPage = nextPage(query);
    return query.lastPage;
  }

  function nextPage(query: Query): string {
    const { outcome, rowsSent } = query;
    const nextUri = address("executing", query);
    if (!outcome) return page(query, "RUNNING", { nextUri });
    const { rows, ...rest } = outcome;
    if (rest.error) return page(query, "FAILED", rest);
    const data = rows.slice(rowsSent, rowsSent + ROWS_PER_PAGE);
    query.rowsSent += data.length;
    // After all rows, one more page says that the query has finished.
    if (data.length === 0) return page(query, "FINISHED", rest);
    return page(query, "RUNNING", { ...rest, nextUri }, data);
  }

  async function end(query: Query, response: ServerResponse): Promise<unknown> {
    cancelled.push(query.statement);
    const errorType = "USER_ERROR";
    query.outcome = { rows: [], error: { message: "gone", errorCode: 3, errorName: "USER_CANCELED", errorType } };
    await stopWork(query);
    return response.writeHead(204).end();
  }

  /** Repeated, because a statement that has just started may miss the first cancel. */
  async function stopWork(query: Query): Promise<void> {
    while (query.work && !query.isOver) {
      await query.cancel();
      await Promise.race([query.work, sleep(LONG_POLL_MS)]);
    }
  }

  function address(phase: string, { id, slug, token }: Query): string {
    return rewrite(`${url}/v1/statement/${phase}/${id}/${slug}/${token}`);
  }

  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  url = `${tls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    cancelled,
    running: () =>
      [...queries.values()].filter(({ work, isOver }) => work && !isOver).map(({ statement }) => statement),
    disturb: (method, ...given) => void faults.push(...given.map((fault) => ({ method, fault }))),
    rewriteNextUri(change) {
      rewrite = change;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all([...queries.values()].map(stopWork));
      await backend.stop();
    },
  };
}

function page(query: Query, state: string, fields: Record<string, unknown>, data: readonly string[] = []): string {
  const body = { id: query.id, infoUri: "http://unused.invalid/", ...fields, stats: { state }, warnings: [] };
  return data.length === 0 ? JSON.stringify(body) : `${JSON.stringify(body).slice(0, -1)},"data":[${data.join()}]}`;
}

function reply(response: ServerResponse, body: string): void {
  response.writeHead(200, { "content-type": "application/json" }).end(body);
}
