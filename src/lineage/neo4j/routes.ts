/** The API of the Neo4j projection: its health and the progress of a rebuild. For admins, since it concerns all tenants. */
import { Type } from "typebox";
import { audit } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { Body, errors, Nullable, ReplyTime } from "../../kernel/http/schemas.ts";
import { actorOf, type Http } from "../../kernel/http/server.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { lineageError } from "../catalogue.ts";
import type { Tenants } from "../tenants/tenants.ts";
import { needsRebuild } from "./doctor.ts";
import { type MirrorState, mirrorState, type Projection } from "./index.ts";
import { createProjectionJob, REBUILD_STATUSES, type Rebuild } from "./job.ts";

export interface ProjectionRoutesDeps {
  db: Db;
  clock: Clock;
  ids: Ids;
  tenants: Pick<Tenants, "get">;
  projection: Projection | undefined;
}

const TenantId = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const RebuildBody = Nullable(Body({ tenantId: Type.Optional(TenantId) }));

const RebuildReply = Type.Object({
  id: Type.String(),
  status: Type.Enum(REBUILD_STATUSES),
  tenantId: Nullable(Type.Integer({ description: "The only one that it is about." })),
  startedAt: ReplyTime,
  endedAt: Nullable(ReplyTime),
  currentTenantId: Nullable(Type.Integer({ description: "The one at work, or the last one." })),
  tenants: Type.Integer({ description: "How many have been begun." }),
  deleted: Type.Integer({ description: "Nodes that were taken away before." }),
  nodes: Type.Integer(),
  edges: Type.Integer(),
  error: Nullable(Type.String()),
});
const ProjectionReply = Type.Object({
  configured: Type.Boolean(),
  server: Nullable(Type.String({ description: "What answers.", examples: ["Neo4j/5.26.12"] })),
  error: Nullable(Type.String({ description: "Why no server answers." })),
  waiting: Type.Integer({ description: "Changes that wait to be written. They wait as long as it takes." }),
  oldestSeconds: Type.Number({ description: "For how long the oldest of them has waited." }),
  lastError: Nullable(Type.String({ description: "Why the last one that was tried is not written yet." })),
  needsRebuild: Type.Boolean({ description: "Whether changes are missing that only a rebuild brings back." }),
  refused: Type.Array(
    Type.Object({
      tenantId: Type.Integer(),
      since: ReplyTime,
      changes: Type.Integer(),
      error: Type.String({ description: "The last reason." }),
    }),
    { description: "Tenants of whose graph Neo4j has refused changes as invalid, up to 100." },
  ),
  rebuild: Nullable(RebuildReply),
});
const NOT_CONFIGURED = {
  configured: false,
  server: null,
  error: null,
  waiting: 0,
  oldestSeconds: 0,
  lastError: null,
  needsRebuild: false,
  refused: [],
  rebuild: null,
};

/** Under `/api/v1/lineage`. */
export function projectionRoutes(api: Http, { db, clock, ids, tenants, projection }: ProjectionRoutesDeps): void {
  const admin = { scope: "admin" } as const;
  const tags = ["lineage projection"];
  const job = projection && createProjectionJob({ projection, clock, ids, log: api.log });

  api.get(
    "/projection",
    {
      config: admin,
      schema: {
        tags,
        summary:
          "Whether the graph is projected to Neo4j, whether its server answers, how far it is behind, and how far a rebuild is",
        description: "`rebuild` is the one that is running or the last one, of those that this process has begun.",
        response: { 200: ProjectionReply },
      },
    },
    async () => {
      if (!projection || !job) return NOT_CONFIGURED;
      const [answer, state] = await Promise.all([projection.health(), mirrorState(db)]);
      const rebuild = job.last();
      return {
        configured: true,
        server: "server" in answer ? answer.server : null,
        error: "error" in answer ? answer.error : null,
        ...stateReply(state),
        rebuild: rebuild && rebuildReply(rebuild),
      };
    },
  );

  api.post(
    "/projection::rebuild",
    {
      config: { ...admin, bodyOptional: true },
      schema: {
        tags,
        summary: "Rebuild the graph in Neo4j, of one tenant or of all, in the background",
        description:
          "Readers see a graph with gaps until it has ended. `GET /api/v1/lineage/projection` shows its progress.",
        body: RebuildBody,
        response: { 202: RebuildReply, ...errors(400, 404, 409) },
      },
    },
    async (request, reply) => {
      if (!job) throw lineageError("PROJECTION_NOT_CONFIGURED");
      const tenantId = request.body?.tenantId === undefined ? undefined : String(request.body.tenantId);
      if (tenantId !== undefined) await tenants.get(tenantId);
      const rebuild = job.start(tenantId);
      await audit(db, actorOf(request), "lineage.rebuild", tenantId ?? "all", { rebuildId: rebuild.id });
      return reply.code(202).send(rebuildReply(rebuild));
    },
  );
}

function stateReply(state: MirrorState) {
  const { backlog, gaps } = state;
  return {
    waiting: backlog.waiting,
    oldestSeconds: backlog.oldest_seconds,
    lastError: backlog.last_error,
    needsRebuild: needsRebuild(state),
    refused: gaps.map(({ tenant_id, first_at, changes, error }) => ({
      tenantId: Number(tenant_id),
      since: first_at,
      changes,
      error,
    })),
  };
}

function rebuildReply({ tenantId, currentTenantId, ...rebuild }: Rebuild) {
  const numberOf = (id: string | null) => (id === null ? null : Number(id));
  return { ...rebuild, tenantId: numberOf(tenantId), currentTenantId: numberOf(currentTenantId) };
}
