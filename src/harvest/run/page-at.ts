/** The request of a page: the bounds of the slice, the position in its list, and the credential of the moment. */
import type { Credential } from "../definition/credentials.ts";
import { boundsOf, inWholeUnits } from "../plan/window.ts";
import type { Part } from "../slice/parts.ts";
import type { RequestContext } from "../spec/render.ts";
import type { CompiledEndpoint } from "./compiled.ts";
import { type Fetched, fetchPage, type Requester } from "./fetch.ts";
import type { Position } from "./position.ts";
import type { PreparedTask } from "./task.ts";
import type { Walk, WalkDeps } from "./walk.ts";

export async function fetchAt(
  deps: WalkDeps,
  walk: Walk,
  endpoint: CompiledEndpoint,
  position: Position,
  { ids, isProbe = false, part }: { ids?: readonly string[]; isProbe?: boolean; part?: Part } = {},
): Promise<Fetched> {
  const { context, source } = walk.task;
  const { spec } = endpoint;
  const { auth, pagination } = spec;
  const resolve = async (isNew: boolean) =>
    auth.type === "NONE" ? undefined : deps.credentials.resolve(context.provenance_code, auth.credential, { isNew });
  const isRequired = auth.type !== "NONE" && auth.required;
  const found = await resolve(false);
  const credential = isRequired && found && "missing" in found ? await resolve(true) : found;
  if (isRequired && credential && "missing" in credential) {
    return { kind: "failed", level: "L4", reason: credential.missing, exchange: undefined };
  }
  const usable = usableOf(credential);
  const renderContext: RequestContext = {
    ...windowContext(walk.task, position),
    ...(endpoint === source.list ? { parts: part ? endpoint.fragments(part) : walk.fragments } : {}),
    page: {
      size: pagination.pageSize,
      number: (pagination.base ?? 1) + position.pageNo - 1,
      offset: position.offset ?? 0,
      token: position.token ?? null,
      url: position.url ?? null,
      ...(ids ? { ids } : {}),
    },
    params: source.snapshot.params,
    plan: {
      id: context.plan_id,
      from: context.plan_from?.toISOString() ?? null,
      to: context.plan_to?.toISOString() ?? null,
    },
    now: context.planned_at.toISOString(),
    isFirst: position.pageNo === 1 || ids !== undefined,
    isProbe,
    ...(usable ? { credential: usable } : {}),
  };
  const isToken = position.token !== undefined && position.token !== pagination.initial;
  const requester: Requester = {
    taskId: context.task_id,
    priority: context.priority,
    labels: { source: context.provenance_code, endpoint: context.endpoint_name, op: context.operation_code },
    stats: walk.stats,
    failures: walk.failures,
    signal: walk.signal,
    isPaused: () => deps.pauses.holds(context),
  };
  return fetchPage(deps, requester, {
    endpoint,
    context: renderContext,
    renewed: async () => {
      const current = usableOf(await resolve(true));
      return current?.value === usable?.value ? undefined : current;
    },
    isStart: position.pageNo === 1 && ids === undefined,
    isSingleUse: pagination.tokenClass === "SINGLE_USE" && isToken && ids === undefined,
  });
}

function usableOf(credential: Credential | undefined) {
  return credential && "value" in credential ? credential : undefined;
}

function windowContext({ context, source }: PreparedTask, { time }: Position): Pick<RequestContext, "window"> {
  const { window } = source.list.spec;
  if (!window || !context.window_from || !context.window_to) return {};
  const { from, to } = inWholeUnits(window, {
    from: time === undefined ? context.window_from : new Date(time),
    to: context.window_to,
  });
  return { window: boundsOf(window, from, to) };
}
