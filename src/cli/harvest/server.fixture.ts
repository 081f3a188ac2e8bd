/** A fake server that answers with a plan that the test controls, and `millrace harvest` against it. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type RunningCommand, startCommand } from "../../../test/cli-in-process.ts";
import { until } from "../../../test/until.ts";
import type { PlanDetail } from "./api.ts";
import { PLAN_ID, planOf } from "./plan.fixture.ts";

type Answer = readonly [status: number, body: unknown];

export interface PlanServer {
  url: string;
  /** What it answers for the plan. */
  plan: PlanDetail;
  /** Instead of each answer, if set. */
  refuse: Answer | undefined;
  /** Other answers, by method and path below /api/v1/harvest. */
  answers: Record<string, Answer>;
  asked: { method: string; path: string; query: Record<string, string>; body: unknown }[];
  /** Resolves when the plan was asked for so many times in total. */
  polls(count: number): Promise<unknown>;
  cli(...words: string[]): RunningCommand;
}

export async function startPlanServer(plan = planOf()): Promise<PlanServer> {
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
      const path = pathname.replace("/api/v1/harvest", "");
      const method = request.method ?? "";
      const body: unknown = text === "" ? undefined : JSON.parse(text);
      state.asked.push({ method, path, query: Object.fromEntries(searchParams), body });
      const missing = [404, { error: "There is no such plan.", code: "PLAN_NOT_FOUND" }] as const;
      const none = path === `/plans/${PLAN_ID}/slices` ? ([200, { items: [], next: null }] as const) : undefined;
      const own = path === `/plans/${PLAN_ID}` ? ([200, state.plan] as const) : none;
      const [status, reply] = state.refuse ?? state.answers[`${method} ${path}`] ?? own ?? missing;
      const json = typeof reply === "string" ? reply : JSON.stringify(reply);
      response.writeHead(status, { "content-type": "application/json", "millrace-version": "0.0.0" }).end(json);
    });
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const state: PlanServer = {
    url,
    plan,
    refuse: undefined,
    answers: {},
    asked: [],
    polls: (count) =>
      until(
        () => state.asked.filter(({ method, path }) => method === "GET" && path.startsWith("/plans/")).length >= count,
        `${count} polls`,
      ),
    cli: (...words) => startCommand(["harvest", ...words], { MILLRACE_URL: url, MILLRACE_KEY: "mlr_test" }),
  };
  return state;
}
