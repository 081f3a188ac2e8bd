/** Plays the demo: opens the house, tells the story, reads back what happened, and stays until Ctrl-C if it is to. */
import { EXIT } from "../cli/common/exit-codes.ts";
import { OperatorError } from "../kernel/errors.ts";
import { type Api, createApi } from "./api.ts";
import { type Check, checkStory, holds } from "./checks.ts";
import type { House } from "./house.ts";
import { invitation, report, reportJson } from "./report.ts";
import { startShop } from "./shop.ts";
import { type Scene, tellStory } from "./story.ts";
import { startSubscribers } from "./subscribers.ts";

export interface PlayOptions {
  open: (tell: (line: string) => void) => Promise<House>;
  /** Ends with the checks instead of staying. */
  once: boolean;
  json: boolean;
  print: (text: string) => void;
  /** Ctrl-C. */
  stopping: AbortSignal;
}

/** As a shell reports a command that Ctrl-C has ended. */
const INTERRUPTED = 130;

/** Answers the exit code: 0 only if every check holds. */
export async function playDemo({ open, once, json, print, stopping }: PlayOptions): Promise<number> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const tell = (line: string) => (json ? undefined : print(`${seconds().toFixed(1).padStart(5)} s  ${line}`));
  const toClose: (() => Promise<void>)[] = [];
  try {
    const shop = await startShop();
    toClose.push(shop.close);
    const subscribers = await startSubscribers({
      onHeard: ({ team, modelId, generation, rerun }) =>
        tell(
          `${team} hears of ${modelId}, generation ${generation}${rerun ? ", a rerun" : ""}; the signature is genuine`,
        ),
    });
    toClose.push(subscribers.close);
    const house = await open(tell);
    toClose.push(house.close); // Closed first: it may be calling the others.
    stopping.throwIfAborted();
    tell(`Millrace listens at ${house.url}`);

    const api = createApi(house, stopping);
    const checks = await played(api, { api, shopUrl: shop.url, subscribers, tablesDir: house.tablesDir, tell });
    const { url, key } = house;
    print(json ? reportJson(checks, seconds(), once ? {} : { url, key }) : report(checks, seconds()));
    if (!once) {
      if (!json) print(invitation(house));
      await aborted(stopping);
    }
    return checks.every(holds) ? EXIT.ok : EXIT.failed;
  } catch (error) {
    if (stopping.aborted) return INTERRUPTED;
    throw error;
  } finally {
    for (const close of toClose.toReversed()) await close();
  }
}

async function played(api: Api, scene: Scene): Promise<Check[]> {
  try {
    return await checkStory(api, await tellStory(scene), scene.subscribers);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    // A call was refused. What would come after it cannot be checked.
    return [{ what: "the story", found: error.message, expected: "told to its end", source: "" }];
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
