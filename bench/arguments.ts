/** What `npm run bench` is asked for: one suite, some of its parts, and how many rounds. */
import { parseArgs } from "node:util";
import { didYouMean } from "../src/kernel/nearest.ts";

export interface Request {
  suite: string;
  /** All if there are none. */
  parts: string[];
  rounds: number;
}

const ROUNDS_DEFAULT = 5;
const ROUNDS_MAX = 1_000;

/** Says which part the suite does not have, if it lacks one. */
export function unknownPart({ suite, parts }: Request, known: readonly string[]): string | undefined {
  const unknown = parts.find((part) => !known.includes(part));
  if (unknown === undefined) return undefined;
  const names = known.length === 0 ? "It has no parts." : `Its parts: ${known.join(", ")}.`;
  return `The suite ${suite} has no part \`${unknown}\`.${didYouMean(unknown, known)} ${names}`;
}

/** The request, or a sentence that says what is wrong, with the usage. */
export function requestOf(words: readonly string[], suites: readonly string[]): Request | { problem: string } {
  const wrong = (what: string) => ({
    problem: `${what} Usage: npm run bench -- ${suites.join("|")} [PART...] [--rounds ${ROUNDS_DEFAULT}]`,
  });
  const { positionals, tokens } = parseArgs({
    args: [...words],
    options: { rounds: { type: "string" } },
    allowPositionals: true,
    strict: false, // Its own errors do not suggest a similar flag.
    tokens: true,
  });
  let rounds = ROUNDS_DEFAULT;
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName, value = "" } = token;
    if (name !== "rounds") return wrong(`${rawName} is not a flag here.${didYouMean(rawName, ["--rounds"])}`);
    rounds = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (!(rounds >= 1 && rounds <= ROUNDS_MAX)) {
      return wrong(`--rounds is \`${value}\`. Accepted: a whole number from 1 to ${ROUNDS_MAX}.`);
    }
  }
  const [suite, ...parts] = positionals;
  if (suite === undefined) return wrong("The name of a suite is missing.");
  if (!suites.includes(suite)) return wrong(`There is no suite \`${suite}\`.${didYouMean(suite, suites)}`);
  return { suite, parts, rounds };
}
