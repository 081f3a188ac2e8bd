/**
 * A fake of the chains API with one chain and one run, which the test controls. It can produce rare events on demand, such as
 * dropped connections.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { startCommand } from "../../../test/cli-in-process.ts";
import { until } from "../../../test/until.ts";
import type { Run, RunNode } from "./api.ts";
import { runOf } from "./frame.fixture.ts";

export interface Asked {
  method: string;
  /** With its query. */
  url: string;
  body: unknown;
  headers: IncomingMessage["headers"];
}

type Answer = readonly [status: number, body: unknown];

export interface ChainServer {
  url: string;
  run: Run;
  nodes: RunNode[];
  /** Sets the reply to `METHOD /path`, below /api/v1 and without a query; several replies are used in turn. */
  answers: Record<string, Answer | ((asked: Asked) => Answer)>;
  /** All calls so far except those of the stream. */
  asked: Asked[];
  /** Calls of the stream, in order. */
  streams: Asked[];
  /** Changes nodes or the run, and sends the event to all followers. */
  move(nodes: readonly RunNode[], run?: Partial<Run>): void;
  /** Sends the end of the run. */
  end(run: Pick<Run, "status"> & Partial<Run>): void;
  /** Sends raw text to all followers. */
  send(text: string): void;
  /** Closes the connections of all followers. */
  drop(): void;
  /** Refuses the next calls of the stream. */
  refuseStream: Answer | undefined;
  followers(count: number): Promise<unknown>;
}

export async function startChainServer(nodes: RunNode[] = []): Promise<ChainServer> {
  const following = new Set<ServerResponse>();
  const state: ChainServer = {
    url: "",
    run: runOf(),
    nodes,
    answers: {},
    asked: [],
    streams: [],
    refuseStream: undefined,
    move(changed, run = {}) {
      Object.assign(state.run, run);
      for (const node of changed) {
        const index = state.nodes.findIndex(({ nodeId }) => nodeId === node.nodeId);
        state.nodes[index] = node;
      }
      state.send(`${eventOf("run", state.run)}${changed.length === 0 ? "" : eventOf("nodes", changed)}`);
    },
    end(run) {
      state.move([], run);
      state.send(eventOf("end", { status: run.status }));
      for (const response of following) response.end();
    },
    send: (text) => following.forEach((response) => response.write(text)),
    drop: () => following.forEach((response) => response.destroy()),
    followers: (count) => until(() => following.size === count, `${count} followers`),
  };

  function stream(asked: Asked, response: ServerResponse): void {
    state.streams.push(asked);
    if (state.refuseStream) return answer(response, state.refuseStream);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`retry: 10\n\n${eventOf("run", state.run)}${eventOf("nodes", state.nodes)}`);
    following.add(response);
    response.on("close", () => following.delete(response));
    if (["SUCCESS", "FAILED", "STOPPED"].includes(state.run.status)) {
      response.end(eventOf("end", { status: state.run.status }));
    }
  }

  function reply(asked: Asked): Answer {
    const call = `${asked.method} ${asked.url.replace("/api/v1", "").replace(/\?.*/, "")}`;
    const given = state.answers[call];
    if (given) return typeof given === "function" ? given(asked) : given;
    if (call === `GET /runs/${state.run.runId}`) return [200, state.run];
    if (call === `GET /runs/${state.run.runId}/nodes`) return [200, state.nodes];
    if (call.startsWith("GET /runs/")) return [400, { error: "There is no such run.", code: "RUN_NOT_FOUND" }];
    return [404, { error: `There is no ${call} here.`, code: "ROUTE_NOT_FOUND" }];
  }

  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const asked = { method, url, headers, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
      if (url === `/api/v1/runs/${state.run.runId}/stream`) return stream(asked, response);
      state.asked.push(asked);
      answer(response, reply(asked));
    });
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}

/** Runs `millrace chain` against this server. */
export function chainCli(server: ChainServer, ...words: string[]) {
  return startCommand(["chain", ...words], { MILLRACE_URL: server.url, MILLRACE_KEY: "mlr_test" });
}

function answer(response: ServerResponse, [status, body]: Answer): void {
  response
    .writeHead(status, { "content-type": "application/json", "millrace-version": "0.0.0" })
    .end(JSON.stringify(body));
}

function eventOf(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
