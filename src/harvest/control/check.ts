/**
 * The connection check of a source: one small page is asked for as a run would ask for it, through its gate, and what came is
 * compared with what the definition says. No plan, slice, record or cursor is written.
 */
import { lookup } from "node:dns/promises";
import { invalid } from "../../kernel/errors.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { DAY_MS, SECOND_MS } from "../../kernel/time/units.ts";
import { usualOperation } from "../definition/check.ts";
import type { ParamValues } from "../definition/definition.ts";
import type { Registry, Source } from "../definition/registry.ts";
import { endpointOf } from "../plan/request.ts";
import { closedUntil, rangeBefore } from "../plan/window.ts";
import { compileSource } from "../run/compiled.ts";
import type { Exchange, Fetched } from "../run/fetch.ts";
import { createDeclareGates } from "../run/gates.ts";
import { factsOf } from "../run/list-walk.ts";
import { fetchAt } from "../run/page-at.ts";
import { contentOf, type PageContent } from "../run/page-content.ts";
import { firstPosition, nextPosition, type Position } from "../run/position.ts";
import type { PreparedTask } from "../run/task.ts";
import { createWalk, type Walk, type WalkDeps } from "../run/walk.ts";
import { isPlatformRate } from "../spec/checks/warnings.ts";
import type { Operation, Snapshot } from "../spec/snapshot.ts";
import { aKnownKey } from "../store/records/updates.ts";
import { answerLines } from "./check-answer.ts";
import { type CheckLine, line } from "./check-line.ts";

export interface CheckedSource {
  source: string;
  endpoint: string;
  lines: CheckLine[];
}

export interface CheckRequest {
  /** Unset: the source's default one. */
  endpoint?: string | undefined;
  params?: ParamValues | undefined;
  /** Of an endpoint that answers the records of ids: the one to ask for. Unset: one that is known. */
  id?: string | undefined;
}

export interface ConnectionCheck {
  run(source: string, asked: CheckRequest): Promise<CheckedSource>;
}

export interface CheckDeps extends WalkDeps {
  db: WalkDeps["db"] & Parameters<typeof createDeclareGates>[0]["db"];
  gates: WalkDeps["gates"] & Parameters<typeof createDeclareGates>[0]["gates"];
  registry: Pick<Registry, "get" | "compile">;
}

/** What is asked for: enough to see how a record is read. */
const RECORDS_MAX = 10;
/** Of the whole check. Whoever asks waits for half a minute. */
const TIMEOUT_MS = 20_000;
const PRIORITY = 0;
/** Where records are asked for by their ids. */
const LISTED: Position = { pageNo: 1, isListed: true };

export function createConnectionCheck(deps: CheckDeps): ConnectionCheck {
  const declareGates = createDeclareGates(deps);

  return {
    async run(name, asked) {
      const source = await deps.registry.get(name);
      const endpoint = endpointOf(source, asked.endpoint);
      const operation = usualOperation(source.definition, endpoint);
      const { params = {} } = asked;
      const { snapshot, specFingerprint, origins } = await deps.registry.compile(source, endpoint, operation, {
        params,
      });
      const id = await idOf(deps, source, endpoint, operation, asked.id);
      const task = taskOf(small(snapshot), specFingerprint, new Date(deps.clock.now()));
      const walk = createWalk(deps, task, AbortSignal.timeout(TIMEOUT_MS));
      await declareGates(task);
      const { list } = task.source;
      const address = await addressLine(snapshot);
      const fetching =
        id === undefined
          ? fetchAt(deps, walk, list, firstPosition(list.spec))
          : fetchAt(deps, walk, list, LISTED, { ids: [id] });
      const fetched = await inTime(walk, fetching);
      const credential = await credentialLine(deps, snapshot, fetched);
      const lines = [
        address,
        connectionLine(snapshot, fetched, credential),
        credential,
        pageLine(task, fetched, credential, id),
        ...(await detailLines(deps, walk, fetched)),
        ...answerLines(snapshot, exchangeOf(fetched), deps.clock.now(), isPlatformRate(origins)),
      ];
      return { source: name, endpoint, lines };
    },
  };
}

/** The record to ask for, where the endpoint lists none. */
async function idOf(
  { db }: CheckDeps,
  { endpointIds }: Source,
  endpoint: string,
  operation: Operation,
  asked: string | undefined,
): Promise<string | undefined> {
  if (operation !== "UPDATE") {
    if (asked === undefined) return undefined;
    throw invalid(`The field \`id\`: ${endpoint} lists its records, so none can be named`);
  }
  const id = asked ?? (await aKnownKey(db, endpointIds.get(endpoint) ?? 0));
  if (id !== undefined) return id;
  throw invalid(`The field \`id\`: ${endpoint} answers the records of ids, and none is known yet: name one`);
}

/** A source that does not answer is what the check tells of, not a failure of the check. */
function inTime({ signal }: Walk, fetching: Promise<Fetched>): Promise<Fetched> {
  return fetching.catch((error: unknown) => {
    if (!signal.aborted) throw error;
    const reason = `there was no answer within ${TIMEOUT_MS / SECOND_MS} seconds, with the wait at the rate gate`;
    return { kind: "unreachable", reason, exchange: undefined };
  });
}

/** A page of a few records, asked for once. */
function small(snapshot: Snapshot): Snapshot {
  const few = <Spec extends Snapshot["spec"]>(spec: Spec): Spec => ({
    ...spec,
    pagination: { ...spec.pagination, pageSize: Math.min(spec.pagination.pageSize, RECORDS_MAX) },
    retry: { ...spec.retry, maxAttempts: 1 },
  });
  const { detail } = snapshot;
  return { ...snapshot, spec: few(snapshot.spec), ...(detail ? { detail: few(detail) } : {}) };
}

/** As a run has it, for the last window that could be harvested; no row stands behind it. */
function taskOf(snapshot: Snapshot, specFingerprint: string, now: Date): PreparedTask {
  const { window } = snapshot.spec;
  const range = window && rangeBefore(window, closedUntil(window, now), Math.min(window.maxWindowMs, DAY_MS));
  const [from, to] = [range?.from ?? null, range?.to ?? null];
  return {
    task_id: "0",
    fence: "0",
    source: compileSource(snapshot),
    context: {
      task_id: "0",
      run_id: "0",
      attempt_no: 1,
      failed_tries: 0,
      is_refused: false,
      slice_id: "0",
      plan_id: "00000000-0000-0000-0000-000000000000",
      schedule_instance_id: "00000000-0000-0000-0000-000000000000",
      endpoint_id: 0,
      provenance_code: snapshot.provenanceCode,
      endpoint_name: snapshot.endpointName,
      operation_code: snapshot.operation,
      plan_strategy: "TIME",
      plan_month: "",
      priority: PRIORITY,
      planned_at: now,
      plan_from: from,
      plan_to: to,
      window_from: from,
      window_to: to,
      namespace_scope_code: "EXPR",
      namespace_key: snapshot.endpointName,
      spec_fingerprint: specFingerprint,
      expr_proto_hash: "",
      expr_hash: "",
      generation: 1,
      batches: 0,
      expected: null,
      received: "0",
      quarantined: "0",
      missing: "0",
      position: null,
      position_at: null,
      root_slice_id: null,
      part: null,
      status_code: "READY",
    },
  };
}

async function addressLine({ spec: { http } }: Snapshot): Promise<CheckLine> {
  const { hostname, host } = new URL(http.baseUrl);
  if (http.proxy !== undefined) {
    return line("address", "ok", `${host} through the proxy ${new URL(http.proxy).host}, which resolves the name.`);
  }
  try {
    const addresses = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true });
    return line("address", "ok", `${host} is ${addresses.map(({ address }) => address).join(", ")}.`);
  } catch (error) {
    const advice = "Check the spelling of `baseUrl`, and the name server of this machine.";
    return line("address", "fail", `${host} cannot be resolved: ${messageOf(error)}.`, advice);
  }
}

function exchangeOf(fetched: Fetched): Exchange | undefined {
  return "exchange" in fetched ? fetched.exchange : undefined;
}

/** It is refused or has no value that can be used, so nothing else is the cause. */
const isCause = (credential: CheckLine) => credential.verdict === "fail";

function connectionLine(
  { spec: { http, auth, rateLimit } }: Snapshot,
  fetched: Fetched,
  credential: CheckLine,
): CheckLine {
  const exchange = exchangeOf(fetched);
  if (exchange) {
    const { protocol } = new URL(http.baseUrl);
    const took = `answered ${exchange.status} in ${Math.round(exchange.latencyMs)} ms`;
    const waited = exchange.waitedMs >= SECOND_MS ? `, after ${Math.round(exchange.waitedMs)} ms at the gate` : "";
    if (protocol === "https:") return line("connection", "ok", `The source ${took} over TLS${waited}.`);
    const what = auth.type === "NONE" ? "everyone on the way can read it" : "credentials travel in the clear";
    const advice = `Use https where the source has it: ${what}.`;
    return line("connection", "warn", `The source ${took} without TLS${waited}.`, advice);
  }
  if (fetched.kind === "park") {
    const seconds = Math.ceil(fetched.delayMs / SECOND_MS);
    const found = `No request was sent: ${fetched.reason}; in ${counted(seconds, "second")} one may be.`;
    const advice = `Check again then. \`rateLimit\` of the definition says what the gate ${rateLimit.keys[0] ?? ""} lets through.`;
    return line("connection", "fail", found, advice);
  }
  if (isCause(credential)) return line("connection", "warn", "No request was sent.", "The credential comes first.");
  const reason = "reason" in fetched ? fetched.reason : "";
  const advice =
    "Check the address, the proxy, the certificate and the firewall. A host that is private or without TLS must be in MILLRACE_HARVEST_ALLOW_PRIVATE of this process and of the workers, which read it when they start.";
  return line("connection", "fail", `${reason}.`, advice);
}

async function credentialLine(deps: CheckDeps, snapshot: Snapshot, fetched: Fetched): Promise<CheckLine> {
  const { auth } = snapshot.spec;
  const status = exchangeOf(fetched)?.status;
  const isRefused = status === 401 || status === 403;
  if (auth.type === "NONE") {
    if (!isRefused) return line("credential", "ok", "The endpoint needs none.");
    const advice = "Declare `auth` of the endpoint with a credential, or check with the source what it allows.";
    return line("credential", "fail", `The endpoint declares none, and the source answered ${status}.`, advice);
  }
  const found = await deps.credentials.resolve(snapshot.provenanceCode, auth.credential, { isNew: true });
  if ("missing" in found) {
    const advice = "Set one that can be used for all processes with the role `worker`, and for this one.";
    if (auth.required) return line("credential", "fail", found.missing, advice);
    return line("credential", isRefused ? "fail" : "warn", `${found.missing} The request went without it.`, advice);
  }
  if (isRefused) {
    const advice = "Replace its value, or check with the source what it allows.";
    return line("credential", "fail", `\`${auth.credential}\` has a value, and the source answered ${status}.`, advice);
  }
  if (status === undefined) {
    return line("credential", "warn", `\`${auth.credential}\` has a value, which was not tried.`);
  }
  return line("credential", "ok", `\`${auth.credential}\` has a value (version ${found.version}), and was accepted.`);
}

function pageLine(
  { source, context }: PreparedTask,
  fetched: Fetched,
  credential: CheckLine,
  id: string | undefined,
): CheckLine {
  if (fetched.kind !== "page") {
    const reason = "reason" in fetched ? fetched.reason.replace(/\.$/, "") : "";
    if (isCause(credential)) return line("page", "fail", `No page was read: ${reason}.`, "The credential comes first.");
    const advice = exchangeOf(fetched)
      ? "The definition (`response`, `classifier`, `http`) may not fit the answer."
      : "The connection comes first.";
    return line("page", "fail", `No page was read: ${reason}.`, advice);
  }
  const { page } = fetched;
  const { spec } = source.list;
  const content = contentOf(page);
  const total = page.total === undefined ? "no total" : `a total of ${page.total.toLocaleString("en-US")}`;
  const facts = { ...factsOf(page, content.latest), total: page.total };
  const hasNext = nextPosition(spec, firstPosition(spec), facts).kind !== "end";
  const isByToken = spec.pagination.type !== "OFFSET" && spec.pagination.type !== "PAGE";
  const window = context.window_from
    ? ` of ${context.window_from.toISOString()} to ${context.window_to?.toISOString()}`
    : "";
  const asked = id === undefined ? window : ` of the id ${id}`;
  const found = `${counted(page.items.length, "record")}${asked}, ${total}${isByToken ? `, ${hasNext ? "a" : "no"} next page` : ""}.`;
  const first = content.quarantined[0];
  if (first) {
    const some = `${content.quarantined.length} of ${counted(page.items.length, "record")} cannot be stored`;
    const advice = "Compare what the source sends with `response.idPath`, `updatedAtPath` and `outputFields`.";
    const verdict = content.quarantined.length > content.records.length ? "fail" : "warn";
    return line("page", verdict, `${some}: ${first.reason}. ${found}`, advice);
  }
  const outside = id === undefined && spec.window?.supportsUpdatedSince ? outsideOf(content, context) : undefined;
  if (outside !== undefined) {
    const advice =
      "Compare the bounds in `http.query` and those of the source: `window.until` is the last unit of the window, `window.to` the first one after it. And `response.updatedAtPath` has to be the time that it filters on.";
    return line("page", "warn", `${outside} ${found}`, advice);
  }
  if (page.total === undefined && spec.response.totalPath !== undefined) {
    return line(
      "page",
      "warn",
      found,
      "`response.totalPath` finds nothing, so it cannot be told whether all has come.",
    );
  }
  if (page.items.length === 0) {
    const advice = `If ${id === undefined ? "the window" : "the id"} should have records, \`response.itemsPath\` or \`http.query\` does not fit the source.`;
    return line("page", "warn", found, advice);
  }
  return line("page", "ok", found);
}

/** A source whose bounds are not those that the definition takes them for answers records of the neighbours of a window. */
function outsideOf({ earliest, latest }: PageContent, { window_from: from, window_to: to }: PreparedTask["context"]) {
  if (from && earliest && earliest < from) {
    return `A record of ${earliest.toISOString()} came, which is before the start of the window.`;
  }
  if (to && latest && latest >= to) {
    const isEnd = latest.getTime() === to.getTime();
    const where = isEnd ? "the end of the window, which is not part of it" : "after the end of the window";
    return `A record of ${latest.toISOString()} came, which is ${where}.`;
  }
  return undefined;
}

/** The record of the first id, where a second endpoint has the records. */
async function detailLines(deps: CheckDeps, walk: Walk, fetched: Fetched): Promise<CheckLine[]> {
  const { detail } = walk.task.source;
  if (!detail || fetched.kind !== "page") return [];
  const [id] = contentOf(fetched.page).records.map(({ item_key }) => item_key);
  if (id === undefined) return [];
  const answer = await inTime(walk, fetchAt(deps, walk, detail, LISTED, { ids: [id] }));
  if (answer.kind !== "page") {
    const advice = "Compare the answer with the endpoint that answers single records.";
    return [
      line("detail", "fail", `The record ${id} was not read: ${"reason" in answer ? answer.reason : ""}.`, advice),
    ];
  }
  const found = answer.page.items.length;
  if (found > 0) return [line("detail", "ok", `The record ${id} came.`)];
  return [line("detail", "warn", `The record ${id} did not come.`, "The source lists it and does not answer it.")];
}
