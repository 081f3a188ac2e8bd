/** Checks a text by the server while a person types: a dry run of the save. */
import { ApiError, call, withQuery } from "../../api/client.ts";
import { type Check, useCheck } from "../../parts/editor/use-check.ts";
import { type Chain, paths } from "../api.ts";
import type { ChainBody } from "./definition.ts";

export interface SaveTarget {
  /** Undefined for a new chain. */
  chainId: string | undefined;
  version: number;
}

export function send(target: SaveTarget, body: ChainBody, dryRun: boolean, signal?: AbortSignal) {
  const { chainId, version } = target;
  const path = withQuery(chainId === undefined ? paths.chains : paths.chain(chainId), dryRun ? { dryRun } : {});
  return call<Chain>(path, {
    method: chainId === undefined ? "POST" : "PUT",
    body: chainId === undefined ? body : { ...body, version },
    ...(signal && { signal }),
  });
}

/** Answers the refusal, or null if the server would save it. Without a body there is nothing to ask. */
export function useSaveCheck(target: SaveTarget, body: ChainBody | undefined): Check<ApiError | null> {
  return useCheck(["chain-check", target.chainId, target.version], body, async (asked, signal) => {
    try {
      await send(target, asked, true, signal);
      return null;
    } catch (error) {
      const isAnswer = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 401;
      if (!isAnswer) throw error;
      // Another version was saved meanwhile: the page says so by itself.
      return error.code === "VERSION_CONFLICT" ? null : error;
    }
  });
}
