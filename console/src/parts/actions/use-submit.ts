/** A form that is sent: once at a time, and what the server refuses is kept for the form to show. */
import { type FormEvent, useState } from "react";
import { ApiError } from "../../api/client.ts";

export function useSubmit(send: () => Promise<void>) {
  const [error, setError] = useState<ApiError>();
  const [isPending, setPending] = useState(false);

  async function submit(): Promise<void> {
    setPending(true);
    setError(undefined);
    try {
      await send();
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      setError(thrown);
    } finally {
      setPending(false);
    }
  }
  function onSubmit(event: FormEvent): void {
    event.preventDefault();
    if (!isPending) void submit();
  }
  return { error, isPending, onSubmit };
}
