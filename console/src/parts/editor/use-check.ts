/** Asks the server about a text while a person types, once they pause. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ApiError } from "../../api/client.ts";
import { useSettled } from "../controls/use-settled.ts";

/** Each text is a query of its own, so answers are kept only for as long as somebody may undo a change. */
const KEPT_MS = 10_000;

export interface Check<Answer> {
  /** Of the text as it is, or of the one before it while it is checked. */
  answer: Answer | undefined;
  /** There is no answer for the text as it is yet. */
  isPending: boolean;
  /** The server does not answer. */
  isAway: boolean;
  again(): void;
}

/** Without a value there is nothing to ask. The value must keep its identity between renders. */
export function useCheck<Value, Answer>(
  key: readonly unknown[],
  value: Value | undefined,
  ask: (value: Value, signal: AbortSignal) => Promise<Answer>,
): Check<Answer> {
  const settled = useSettled(value);
  const { data, isPlaceholderData, isFetching, failureReason, refetch } = useQuery<Answer, ApiError>({
    queryKey: [...key, settled],
    queryFn({ signal }) {
      if (settled === undefined) throw new Error("there is nothing to check");
      return ask(settled, signal);
    },
    enabled: settled !== undefined,
    placeholderData: keepPreviousData,
    gcTime: KEPT_MS,
  });
  return {
    answer: value === undefined ? undefined : data,
    // Not by the identity of what was asked: a text that returns to an earlier state finds the answer of another value.
    isPending: value !== undefined && (settled !== value || data === undefined || isPlaceholderData || isFetching),
    isAway: failureReason?.status === 0,
    again: () => void refetch(),
  };
}
