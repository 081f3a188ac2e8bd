/** The links of the audit log. */
import { expect, test } from "vitest";
import { targetHref } from "./targets.ts";

test.each<[action: string, target: string, details: object, href: string | undefined]>([
  ["source.update", "shop", {}, "/harvest/shop"],
  ["harvest_schedule.pause", "7", { source: "shop", name: "nightly" }, "/harvest/shop"],
  ["cursor.rewind", "shop/orders/created", {}, "/harvest/shop?tab=cursors&namespace=orders%2Fcreated"],
  ["gate.open", "crossref", {}, "/harvest"],
  ["chain.update", "c1", { version: 3 }, "/chains/c1?tab=versions&version=3"],
  ["chain.disable", "c1", {}, "/chains/c1"],
  ["chain.delete", "c1", { name: "daily" }, undefined],
  ["schedule.update", "s1", { chainId: "c1" }, "/chains/c1?tab=schedules"],
  ["pool.set", "warehouse", { size: 2 }, "/chains/runs?waitsFor=pool%3Awarehouse"],
  ["node.retry", "r1/load", {}, "/chains/runs/r1?node=load"],
  ["model.update", "MM1", {}, "/arrivals/models/MM1"],
  ["subscription.update", "12", {}, "/arrivals/deliveries?tab=subscriptions&id=12"],
  ["delivery.redeliver", "d1", {}, "/arrivals/deliveries?id=d1"],
  [
    "delivery.recover",
    "https://receiver.example/hook",
    {
      status: "FAILED",
      subscriptionId: 12,
      modelId: null,
      opTime: "20260401",
      callbackUrl: "https://receiver.example/hook",
    },
    "/arrivals/deliveries?subscriptionId=12&opTime=20260401",
  ],
  ["tenant.update", "7", {}, "/lineage/tenants?id=7"],
  ["lineage.replay", "7/abc", {}, "/lineage/dead-letters?tenant=7&id=abc"],
  ["lineage.replay", "7", {}, "/lineage/dead-letters?tenant=7"],
  ["lineage.rebuild", "all", {}, "/lineage/tenants"],
  ["task.cancel", "41", { tenantId: "7" }, "/lineage/tasks?tenant=7&id=41"],
  ["task.reset-all", "7", { status: "FAILED" }, "/lineage/tasks?tenant=7&status=FAILED"],
  [
    "pipeline.retry",
    "sales/2026",
    { stage: null, reason: "failed" },
    "/tracking?tab=stuck&q=sales%2F2026&reason=failed",
  ],
  ["pipeline.retry", "all", {}, "/tracking?tab=stuck"],
  ["key.revoke", "k1", { name: "loader" }, "/admin?tab=keys"],
  ["secret.set", "SHOP", {}, undefined],
])("%s of %s leads to its page", (action, target, details, href) => {
  expect(targetHref({ action, target, details })).toBe(href);
});
