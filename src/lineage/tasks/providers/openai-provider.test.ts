/** A service that speaks the API of OpenAI, asked for several batches at a time. */
import { expect, onTestFinished, test } from "vitest";
import { signal, until } from "../../../../test/until.ts";
import { createOutbound } from "../../../kernel/net/outbound.ts";
import { systemClock } from "../../../kernel/time/clock.ts";
import { DIMENSION, embeds, startModelServer } from "./model-server.fixture.ts";
import { openAiEmbedder } from "./openai-provider.ts";

test("a batch that was sent before another found out the dimension to ask for is asked again too", async () => {
  const models = await startModelServer();
  const outbound = createOutbound({ allowPrivate: true });
  onTestFinished(async () => {
    await outbound.close();
    await models.stop();
  });
  const released = signal();
  models.onEmbeddings((nth, response, received) => {
    const { input, dimensions } = received.json as { input: string[]; dimensions?: number };
    if (input[0] === "a" || dimensions !== undefined) return embeds(64)(nth, response, received);
    void released.promise.then(() => embeds(64)(nth, response, received));
    return undefined;
  });
  const service = { endpoint: models.endpoint, model: "embed-small", credential: undefined };
  const embedder = openAiEmbedder({ outbound, clock: systemClock, timeoutMs: 10_000 }, service, DIMENSION);
  const never = new AbortController().signal;
  const second = embedder.embed(["b"], never);
  await until(() => models.calls().length === 1, "its call");
  const first = embedder.embed(["a"], never);
  await first;
  released.resolve();
  expect((await Promise.all([first, second])).map(([vector]) => (vector as number[]).length)).toEqual([
    DIMENSION,
    DIMENSION,
  ]);
});
