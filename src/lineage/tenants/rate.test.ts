import { expect, test } from "vitest";
import type { ApiError } from "../../kernel/errors.ts";
import { createTenantRate } from "./rate.ts";
import type { Tenant } from "./tenants.ts";

const tenant = (id: string, rateLimitPerMinute: number | null) => ({ id, rateLimitPerMinute }) as Tenant;

function start() {
  const clock = { at: 0, now: () => clock.at };
  const rate = createTenantRate({ clock });
  const sent = (who: Tenant, count: number) => {
    for (let n = 0; n < count; n += 1) {
      try {
        rate.take(who);
      } catch (error) {
        return { taken: n, refused: error as ApiError };
      }
    }
    return { taken: count };
  };
  return { clock, sent };
}

test("a tenant without a limit has none", () => {
  expect(start().sent(tenant("7", null), 1_000).taken).toBe(1_000);
});

test("a tenant may send a minute's worth at once, then as fast as its limit allows, and never saves up more", () => {
  const { clock, sent } = start();
  const who = tenant("7", 120);
  const { taken, refused } = sent(who, 500);
  expect(taken).toBe(120);
  expect(refused).toMatchObject({ code: "TENANT_RATE_LIMITED", status: 503, retryAfterSeconds: 1 });
  expect(refused?.details).toEqual({ tenantId: 7, limit: 120, seconds: 1 });
  clock.at += 1_000;
  expect(sent(who, 500).taken).toBe(2);
  clock.at += 3_600_000;
  expect(sent(who, 500).taken).toBe(120);
});

test("a slow tenant is told how long it has to wait", () => {
  const { sent } = start();
  expect(sent(tenant("7", 2), 3)).toMatchObject({ taken: 2, refused: { retryAfterSeconds: 30 } });
});

test("one tenant's limit is not another's", () => {
  const { sent } = start();
  sent(tenant("7", 5), 6);
  expect(sent(tenant("8", 5), 5).taken).toBe(5);
});
