/** The shop of the scenario: it lists the orders of a day, and fails when it is told to. It refuses every export. */
import { type LocalServer, startLocalServer } from "./local-server.ts";

export interface Order {
  id: number;
  region: string;
  amount: number;
}

export interface Shop extends LocalServer {
  /** The next calls for orders fail. */
  failNext(calls: number): void;
  /** From now on the orders of that day include a late one. */
  addLateOrder(day: string): void;
}

const ORDERS: readonly Order[] = [
  { id: 1, region: "EU", amount: 120 },
  { id: 2, region: "US", amount: 80 },
  { id: 3, region: "EU", amount: 60 },
];
const LATE_ORDER: Order = { id: 4, region: "US", amount: 100 };

export async function startShop(): Promise<Shop> {
  let failing = 0;
  const late = new Set<string>();
  const server = await startLocalServer(({ url }) => {
    if (url.pathname === "/export") return { status: 403, body: { error: "The export licence has expired." } };
    if (failing > 0) {
      failing -= 1;
      return { status: 500, body: { error: "The shop is restarting." } };
    }
    const isLate = late.has(url.searchParams.get("day") ?? "");
    return { status: 200, body: { orders: isLate ? [...ORDERS, LATE_ORDER] : ORDERS } };
  });
  return {
    ...server,
    failNext: (calls) => void (failing = calls),
    addLateOrder: (day) => void late.add(day),
  };
}
