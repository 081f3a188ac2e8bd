/** What requests cost at OpenAlex, and what each key has left of its day, which ends at midnight in UTC. */
import type { Clock } from "../../kernel/time/clock.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { dayOf } from "../common/records.ts";
import type { SourceRequest } from "../common/source.ts";

/** In millionths of a dollar. */
export const PRICES = { list: 100, search: 1000, single: 0, singleWithoutKey: 100 } as const;
const CREDIT = 100;
const BUDGET_USD_WITH_KEY = 1;
const BUDGET_USD_WITHOUT = 0.1;
const KEYS_MAX = 10_000;

export interface Purse {
  /** Takes the price, or answers false if less is left. */
  pay(request: SourceRequest, price: number): boolean;
  headers(request: SourceRequest, price: number): Record<string, string>;
  secondsToReset(): number;
}

export function keyOf({ params, headers }: SourceRequest): string | undefined {
  const [, bearer] = /^Bearer (\S+)$/.exec(headers.authorization ?? "") ?? [];
  return params.get("api_key") ?? bearer;
}

export function createPurse({
  clock,
  budgetsUsd,
}: {
  clock: Clock;
  /** Of a day, by key. */
  budgetsUsd: Readonly<Record<string, number>>;
}): Purse {
  /** What was spent, by day and key. */
  const spent = new Map<string, number>();
  const entryOf = (request: SourceRequest) => `${dayOf(clock.now())} ${keyOf(request) ?? request.remoteAddress}`;
  const budgetOf = (request: SourceRequest) => {
    const key = keyOf(request);
    return Math.round((budgetsUsd[key ?? ""] ?? (key === undefined ? BUDGET_USD_WITHOUT : BUDGET_USD_WITH_KEY)) * 1e6);
  };
  const leftOf = (request: SourceRequest) => budgetOf(request) - (spent.get(entryOf(request)) ?? 0);
  const secondsToReset = () => Math.ceil((DAY_MS - (clock.now() % DAY_MS)) / 1000);
  const usd = (micros: number) => String(micros / 1e6);

  return {
    secondsToReset,
    pay(request, price) {
      if (leftOf(request) < price) return false;
      if (spent.size >= KEYS_MAX) spent.clear();
      spent.set(entryOf(request), (spent.get(entryOf(request)) ?? 0) + price);
      return true;
    },
    headers: (request, price) => ({
      "x-ratelimit-cost-usd": usd(price),
      "x-ratelimit-credits-used": String(price / CREDIT),
      "x-ratelimit-limit": String(budgetOf(request) / CREDIT),
      "x-ratelimit-limit-usd": usd(budgetOf(request)),
      "x-ratelimit-onetime-remaining": "0",
      "x-ratelimit-prepaid-remaining-usd": "0",
      "x-ratelimit-remaining": String(Math.floor(leftOf(request) / CREDIT)),
      "x-ratelimit-remaining-usd": usd(leftOf(request)),
      "x-ratelimit-reset": String(secondsToReset()),
    }),
  };
}
