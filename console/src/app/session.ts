/** Who is signed in. */
import { useSyncExternalStore } from "react";
import { act, call, whenSignedOut } from "../api/client.ts";
import { queryClient } from "../api/live.ts";
import { forgetSearches } from "./last-search.ts";

export interface Session {
  name: string;
  scopes: readonly string[];
  tenantId?: number;
}

/** `unknown` until the server has answered; `ended` keeps the page, with the session that it had. */
type Status = { is: "unknown" } | { is: "none" } | { is: "open" | "ended"; session: Session; rev: bigint };

const PATH = "/api/v1/session";
let status: Status = { is: "unknown" };
const listeners = new Set<() => void>();

function set(next: Status): void {
  status = next;
  for (const listener of listeners) listener();
}

whenSignedOut(() => set(status.is === "open" || status.is === "ended" ? { ...status, is: "ended" } : { is: "none" }));

export async function loadSession(): Promise<void> {
  const { data, rev } = await call<Session>(PATH);
  set({ is: "open", session: data, rev });
}

type Credential = { key: string } | { code: string };

/** Gets the cookie of a session. */
export async function openSession(by: Credential): Promise<void> {
  await act(PATH, "POST", by);
}

export async function signIn(by: Credential): Promise<void> {
  await openSession(by);
  await resume();
}

async function resume(): Promise<void> {
  await loadSession();
  await queryClient.invalidateQueries();
}

// The person may have signed in again in another tab, or by a link.
document.addEventListener("visibilitychange", () => {
  if (status.is === "ended" && !document.hidden) void resume().catch(() => {});
});

export async function signOut(): Promise<void> {
  await act(PATH, "DELETE");
  queryClient.clear();
  forgetSearches();
  set({ is: "none" });
}

export function useSessionStatus(): Status {
  return useSyncExternalStore(subscribe, () => status);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Whether the person lacks a scope. */
export function useLacking(): (scope: string) => boolean {
  const current = useSessionStatus();
  const scopes = "session" in current ? current.session.scopes : [];
  return (scope) => !scopes.includes("admin") && !scopes.includes(scope);
}

/** The scope if the person lacks it, so that a button can name it. */
export function useMissing(scope: string): string | undefined {
  return useLacking()(scope) ? scope : undefined;
}
