/** The doctor's checks of webhooks: deliveries that are stuck, and endpoints that fail or are disabled. */
import type { DoctorCheck } from "../kernel/doctor.ts";
import { shownUrl } from "../kernel/net/outbound.ts";
import { counted } from "../kernel/text/sentences.ts";
import { deliveryHealth, endpointHealth } from "./store/health.ts";

const OVERDUE_SECONDS_WARN = 60;

export const webhookChecks: DoctorCheck[] = [
  {
    name: "webhook deliveries",
    async look(db) {
      const { sending, orphaned, overdue_seconds } = await deliveryHealth(db);
      const found = `Being sent: ${counted(sending, "delivery", "deliveries")}.`;
      if (orphaned > 0) {
        return {
          verdict: "broken",
          found: `${found} Held by a process that no longer exists: ${orphaned}.`,
          advice: "No process reclaims them: check that one runs with the role `worker`, and read its log.",
        };
      }
      if (overdue_seconds < OVERDUE_SECONDS_WARN) return { verdict: "ok", found };
      return {
        verdict: "warning",
        found: `${found} One has been due for ${Math.round(overdue_seconds)} s although its endpoint is healthy.`,
        advice:
          "Check that a process runs with the role `worker`; raise `webhooks.slots` if there is too much to send.",
      };
    },
  },
  {
    name: "webhook endpoints",
    async look(db) {
      const { failing, disabled, example } = await endpointHealth(db);
      if (example === null) return { verdict: "ok", found: "No endpoint is disabled or has failed for an hour." };
      return {
        verdict: "warning",
        found: `Endpoints that have failed without a success for more than an hour: ${failing}; disabled: ${disabled}; for instance ${shownUrl(example)}.`,
        advice:
          "GET /api/v1/kpi/subscriptions shows the reason. Once the receiver works, set `status` to 1 again, and recover what failed.",
        isListed: true,
      };
    },
  },
];
