/** The chain of causes of an error: often only a cause can be explained. */

/** The error, its cause, the cause of that, and so on. */
export function withCauses(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let link = error; link !== undefined && !chain.includes(link); link = causeOf(link)) chain.push(link);
  return chain;
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
