/** A write by a button: pending while it runs, then a message of its success or of its failure, with a retry where that is safe. */
import { useState } from "react";
import { ApiError } from "../../api/client.ts";
import { toast, toastError } from "./toasts.tsx";

interface Action {
  isPending: boolean;
  /** `write` answers the message. */
  run(write: () => Promise<string>): void;
}

export function useAction(): Action {
  const [isPending, setPending] = useState(false);
  async function run(write: () => Promise<string>): Promise<void> {
    setPending(true);
    try {
      toast(await write());
    } catch (error) {
      toastError(error, error instanceof ApiError && error.isRepeatable ? () => void run(write) : undefined);
    } finally {
      setPending(false);
    }
  }
  return { isPending, run: (write) => void run(write) };
}
