/** The source of the scenario: a shop that lists the orders of a day. Its first call fails; later calls include a late order. */
import { type LocalServer, startLocalServer } from "./local-server.ts";

export interface Order {
  id: number;
  region: string;
  amount: number;
}

const ORDERS: readonly Order[] = [
  { id: 1, region: "EU", amount: 120 },
  { id: 2, region: "US", amount: 80 },
  { id: 3, region: "EU", amount: 60 },
];
const LATE_ORDER: Order = { id: 4, region: "US", amount: 100 };

export function startShop(): Promise<LocalServer> {
  let calls = 0;
  return startLocalServer(() => {
    calls += 1;
    if (calls === 1) return { status: 500, body: { error: "The shop is being restarted." } };
    return { status: 200, body: { orders: calls === 2 ? ORDERS : [...ORDERS, LATE_ORDER] } };
  });
}
