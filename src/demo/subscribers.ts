/** The subscribers of the scenario: teams that accept only deliveries with their secret and a valid signature. One is down at first. */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isRecord } from "../kernel/json/is-record.ts";
import { type Incoming, type LocalServer, startLocalServer } from "./local-server.ts";

export const TEAMS = ["finance", "growth", "research", "audit"] as const;
export type Team = (typeof TEAMS)[number];

/** A delivery that a team accepted. */
export interface Received {
  team: Team;
  /** The same for all attempts of a delivery. */
  id: string;
  modelId: string;
  opTime: string;
  generation: number;
  rerun: boolean;
}

export interface Subscribers extends LocalServer {
  callbackUrl(team: Team): string;
  /** The secret of the team's subscription. */
  secret(team: Team): string;
  /** Accepts deliveries signed with this key. */
  trust(team: Team, signingKey: string): void;
  /** Ends the outage of a team. */
  recover(team: Team): void;
  /** Each accepted delivery once. */
  received(): Received[];
}

const TOLERANCE_SECONDS = 300;
/** How long a team that is down asks callers to wait. */
const RETRY_AFTER_SECONDS = 30;

export async function startSubscribers({
  onReceived,
}: {
  onReceived: (delivery: Received) => void;
}): Promise<Subscribers> {
  const keys = new Map<Team, string>();
  const down = new Set<Team>(["audit"]);
  const received = new Map<string, Received>();
  const server = await startLocalServer((request) => {
    const team = TEAMS.find((name) => request.url.pathname === pathOf(name));
    if (team === undefined) return { status: 404 };
    if (down.has(team)) {
      const headers = { "retry-after": String(RETRY_AFTER_SECONDS) };
      return { status: 503, headers, body: { error: `${team} is down for maintenance.` } };
    }
    const key = keys.get(team);
    if (key === undefined || !hasSecret(team, request) || !hasValidSignature(request, key)) return { status: 401 };
    const id = String(request.headers["webhook-id"]);
    const repeated = received.has(id);
    const delivery = { team, id, ...fieldsOf(request.body) };
    received.set(id, delivery);
    if (!repeated) onReceived(delivery);
    return { status: 204 };
  });
  return {
    ...server,
    callbackUrl: (team) => server.url + pathOf(team),
    secret: (team) => (team === "finance" ? `Header,Authorization,${tokenOf(team)}` : `Query,token,${tokenOf(team)}`),
    trust: (team, signingKey) => void keys.set(team, signingKey),
    recover: (team) => void down.delete(team),
    received: () => [...received.values()],
  };
}

function pathOf(team: Team): string {
  return `/hooks/${team}`;
}

function tokenOf(team: Team): string {
  return `known-to-${team}`;
}

function hasSecret(team: Team, { url, headers }: Incoming): boolean {
  const sent = team === "finance" ? headers.authorization : url.searchParams.get("token");
  return sent === tokenOf(team);
}

/** The verification of the Standard Webhooks specification. */
function hasValidSignature(
  { headers, body }: { headers: IncomingHttpHeaders; body: string },
  signingKey: string,
): boolean {
  const { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signatures } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(time)) < TOLERANCE_SECONDS)) return false;
  const key = Buffer.from(signingKey.replace("whsec_", ""), "base64");
  const signed = createHmac("sha256", key)
    .update(`${String(id)}.${String(time)}.${body}`)
    .digest("base64");
  const expected = Buffer.from(`v1,${signed}`);
  return String(signatures)
    .split(" ")
    .map((one) => Buffer.from(one))
    .some((one) => one.length === expected.length && timingSafeEqual(one, expected));
}

function fieldsOf(body: string): Pick<Received, "modelId" | "opTime" | "generation" | "rerun"> {
  const payload: unknown = JSON.parse(body);
  const { modelId, opTime, generation, rerun } = isRecord(payload) ? payload : {};
  return { modelId: String(modelId), opTime: String(opTime), generation: Number(generation), rerun: rerun === true };
}
