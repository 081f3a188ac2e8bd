/** What an error says. Anything can be thrown, so it need not be an Error. */

/** When every address of a host fails, Node throws an AggregateError without a message around the errors that have one. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
