/**
 * The artifact of a node that has waited for a child run: `{ runId, artifacts }`, those of that run by node, or
 * `{ runId, items }`, those of a map in the order of its list. If they are too large together they stay where they are, and the
 * node's artifact is a reference, `{ runId, byReference: "artifacts" }`. What a later node reads of it is put in its place
 * before that node runs, up to a limit. The child run has succeeded, so it cannot change meanwhile.
 */
import type { Db } from "../../kernel/data/db.ts";
import type { Path } from "../../kernel/expressions/cel.ts";
import { UUID } from "../../kernel/ids.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { artifactBytes, isChildOf, readArtifacts } from "../store/children.ts";
import type { NodeKey } from "../store/live.ts";
import { ARTIFACT_BYTES_MAX, FinalFailure } from "../types/node-type.ts";

/** Where the artifact has those of the child run. */
export type Member = "artifacts" | "items";

/** What one node may read by reference, over all its parents. */
export const READ_BYTES_MAX = 16 * 1024 * 1024;

type NodeArtifacts = readonly { node_id: string; artifact: unknown }[];

export async function childArtifact(db: Db, childRunId: string, member: Member): Promise<unknown> {
  const enough = 2 * ARTIFACT_BYTES_MAX; // As text of the database it is up to twice as long as JSON without spaces.
  if ((await artifactBytes(db, childRunId, null, enough)) <= enough) {
    const artifact = whole(childRunId, member, await readArtifacts(db, childRunId, null));
    if (Buffer.byteLength(JSON.stringify(artifact)) <= ARTIFACT_BYTES_MAX) return artifact;
  }
  return { runId: childRunId, byReference: member };
}

function whole(runId: string, member: Member, nodes: NodeArtifacts): Record<string, unknown> {
  if (member === "items") return { runId, items: nodes.map(({ artifact }) => artifact) };
  const present = nodes.filter(({ artifact }) => artifact !== null);
  return { runId, artifacts: Object.fromEntries(present.map(({ node_id, artifact }) => [node_id, artifact])) };
}

interface Found {
  childRunId: string;
  member: Member;
  isReference: boolean;
  /** What is read of the child run's artifacts: paths that begin with a node, or all of them (the empty path). */
  below: readonly Path[];
}

/** Undefined if it is no artifact of a child run, or nothing is read of the artifacts in it. */
function look(artifact: unknown, paths: readonly Path[]): Found | undefined {
  if (!isRecord(artifact)) return undefined;
  const { runId, byReference } = artifact as { runId?: unknown; byReference?: unknown };
  const member = (["artifacts", "items"] as const).find(
    (name) => byReference === name || (byReference === undefined && typeof artifact[name] === "object"),
  );
  if (typeof runId !== "string" || !UUID.test(runId) || member === undefined) return undefined;
  const below = pathsBelow(paths, member);
  return below.length === 0 ? undefined : { childRunId: runId, member, isReference: byReference !== undefined, below };
}

function pathsBelow(paths: readonly Path[], name: string): Path[] {
  return paths.flatMap((path) => (path.length === 0 ? [path] : path[0] === name ? [path.slice(1)] : []));
}

/** By node id, the artifacts inside one that has no reference at its top. */
function inside(artifact: unknown, member: Member): [nodeId: string, artifact: unknown][] {
  return Object.entries((artifact as Record<Member, object | null>)[member] ?? {});
}

/** Whether there is a reference on one of the paths. */
export function readsReference(artifact: unknown, paths: readonly Path[]): boolean {
  const found = look(artifact, paths);
  if (!found || found.isReference) return found !== undefined;
  return inside(artifact, found.member).some(([nodeId, value]) =>
    readsReference(value, pathsBelow(found.below, nodeId)),
  );
}

/** The bytes that a node may still read. */
export interface Room {
  bytes: number;
}

/**
 * The node's artifact with everything on these paths in place of references. Throws a FinalFailure if that has too many bytes.
 * Data that only looks like a reference stays: a node may read only what its own parents have started.
 */
export function resolveArtifact(
  db: Db,
  { owner, artifact, paths }: { owner: NodeKey; artifact: unknown; paths: readonly Path[] },
  room: Room,
): Promise<unknown> {
  return resolve(artifact, owner, paths, async () => true);

  async function resolve(
    value: unknown,
    node: NodeKey,
    read: readonly Path[],
    isOwn: () => Promise<boolean>,
  ): Promise<unknown> {
    const found = look(value, read);
    if (!found || !readsReference(value, read)) return value;
    const { childRunId, member, below, isReference } = found;
    const isChild = async () => (await isOwn()) && isChildOf(db, childRunId, node);
    if (isReference && !(await isChild())) return value;
    const nodes = isReference
      ? await load(childRunId, member, below)
      : inside(value, member).map(([node_id, inner]) => ({ node_id, artifact: inner }));
    const resolved: { node_id: string; artifact: unknown }[] = [];
    for (const { node_id, artifact: inner } of nodes) {
      const key = { run_id: childRunId, node_id };
      resolved.push({ node_id, artifact: await resolve(inner, key, pathsBelow(below, node_id), isChild) });
    }
    return whole(childRunId, member, resolved);
  }

  async function load(runId: string, member: Member, below: readonly Path[]): Promise<NodeArtifacts> {
    const names = new Set(below.map(([name]) => name));
    const nodeIds = member === "items" || names.has(undefined) ? null : ([...names] as string[]);
    const bytes = await artifactBytes(db, runId, nodeIds, room.bytes);
    if (bytes > room.bytes) {
      const which = nodeIds === null ? "all artifacts" : "artifacts";
      throw new FinalFailure(
        `it reads ${which} of run ${runId}, and a node can read ${READ_BYTES_MAX} bytes of child runs in total; ` +
          "read fewer of them, by their names, or store large results elsewhere and return a reference",
      );
    }
    room.bytes -= bytes;
    return readArtifacts(db, runId, nodeIds);
  }
}
