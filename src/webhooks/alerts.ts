/** The alerts of the settings: addresses that get failures. Their URLs and keys stay in memory; rows have only their names. */

import { OperatorError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import { type Environment, withEnvironment } from "../kernel/secrets/environment-references.ts";
import type { Target } from "./delivery/send.ts";
import type { AlertEvent, Payload } from "./events.ts";
import { parseSecret, type Secret } from "./secrets/secret.ts";
import { isSigningKey } from "./secrets/signing.ts";
import type { AlertSettings } from "./settings.ts";
import type { NewDelivery } from "./store/deliveries.ts";

export interface Alerts {
  /** One delivery for each alert that has this event. */
  deliveriesOf(eventId: string, payload: Payload): NewDelivery[];
  /** Whether any alert has this event. */
  has(event: AlertEvent): boolean;
  /** The target of an alert, by the `callback_url` of its rows; undefined if the settings no longer have it. */
  target(callbackUrl: string): Target | undefined;
}

const PREFIX = "alert:";

/** The name of the alert that a row's `callback_url` stands for; null if it is the address of a subscription. */
export function alertNameOf(callbackUrl: string): string | null {
  return callbackUrl.startsWith(PREFIX) ? callbackUrl.slice(PREFIX.length) : null;
}

export function createAlerts(settings: readonly AlertSettings[], env: Environment, ids: Ids): Alerts {
  const targets = new Map<string, Target>();
  const alerts = settings.map((alert, index) => {
    const place = `webhooks.alerts[${index}]`;
    const url = urlOf(alert, place, env);
    const callbackUrl = PREFIX + (alert.name ?? new URL(url).host);
    if (targets.has(callbackUrl)) {
      throw new OperatorError(
        `${place} has the name of another alert (${alertNameOf(callbackUrl)}). Give each its own \`name\`.`,
      );
    }
    targets.set(callbackUrl, {
      url,
      secret: secretOf(alert, place, env),
      signingKeys: signingKeysOf(alert, place, env),
    });
    return { ...alert, callbackUrl };
  });
  const wants = ({ events }: AlertSettings, event: string) =>
    events === undefined || (events as readonly string[]).includes(event);
  return {
    has: (event) => alerts.some((alert) => wants(alert, event)),
    deliveriesOf: (eventId, payload) =>
      alerts
        .map((alert, index) => ({ ...alert, group_no: index + 1 }))
        .filter((alert) => wants(alert, payload.event))
        .map(({ callbackUrl, group_no, retryNum }) => ({
          id: ids.uuid(),
          event_id: eventId,
          group_no,
          callback_url: callbackUrl,
          subscription_ids: [],
          payload,
          retry_num: retryNum,
        })),
    target: (callbackUrl) => targets.get(callbackUrl),
  };
}

function urlOf({ url }: AlertSettings, place: string, env: Environment): string {
  const whole = withEnvironment(url, `${place}.url`, env, encodeURIComponent);
  if (/^https?:/.test(whole) && URL.canParse(whole)) return whole;
  throw new OperatorError(`${place}.url is not a URL; write it in full, as in https://host/path.`);
}

function secretOf({ secret }: AlertSettings, place: string, env: Environment): Secret | undefined {
  if (secret === undefined) return undefined;
  const triple = withEnvironment(secret, `${place}.secret`, env);
  try {
    return parseSecret(triple);
  } catch (error) {
    throw new OperatorError(`${place}.secret: ${(error as Error).message}`); // The message quotes no part of the secret.
  }
}

function signingKeysOf({ signingKey }: AlertSettings, place: string, env: Environment): string[] {
  if (signingKey === undefined) return [];
  const key = withEnvironment(signingKey, `${place}.signingKey`, env);
  if (isSigningKey(key)) return [key];
  throw new OperatorError(
    `${place}.signingKey must be \`whsec_\` and 24 to 64 bytes in base64. ` +
      'Make one with: echo "whsec_$(openssl rand -base64 32)"',
  );
}
