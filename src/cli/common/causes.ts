/** An error with all that led to it: what can be explained or reported is often only the cause. */

/** The error itself first, then its cause, the cause's cause, and so on. */
export function withCauses(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let link = error; link !== undefined && !chain.includes(link); link = causeOf(link)) chain.push(link);
  return chain;
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
