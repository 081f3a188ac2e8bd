/** Embeds a list of texts with a result for each. If the model refuses the list, its halves are tried, down to single texts. */
import { type Embedder, ProviderError } from "./provider.ts";

/**
 * One bad text among 64 costs 7 refused calls to find, so this is enough for several. A service that refuses everything is
 * not asked about each text: what is left shares the last refusal, and comes again with the next batch.
 */
const REFUSALS_MAX = 24;

/** For each text its vector, or why there is none. Throws only when the signal ended it. */
export async function embedEach(
  embedder: Embedder,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<(number[] | ProviderError)[]> {
  const results: (number[] | ProviderError)[] = texts.map(() => []);
  let refusals = 0;
  let given: ProviderError | undefined; // Why no further call is made.

  async function embed(from: number, to: number): Promise<void> {
    if (given) return void results.fill(given, from, to);
    try {
      const vectors = await embedder.embed(texts.slice(from, to), signal);
      for (const [offset, vector] of vectors.entries()) results[from + offset] = vector;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      refusals += 1;
      if (error.failure !== "BAD_REQUEST" || refusals >= REFUSALS_MAX) given = error;
      if (given || to - from === 1) return void results.fill(error, from, to);
      const middle = from + Math.floor((to - from) / 2);
      await embed(from, middle);
      await embed(middle, to);
    }
  }

  if (texts.length > 0) await embed(0, texts.length);
  return results;
}
