/** Seals and opens the secrets of a subscription for its row: its own secret, and the signing keys of its endpoint. */
import { OperatorError } from "../../kernel/errors.ts";
import { orUnavailable, type SecretBox } from "../../kernel/secrets/cipher.ts";
import type { Target } from "../delivery/send.ts";
import type { TargetRow } from "../store/subscriptions.ts";
import { parseSecret, type Secret } from "./secret.ts";

export interface SealedSecrets {
  sealSecret(subscriptionId: number, secret: Secret): string;
  /** Undefined if it was sealed under another key. */
  tryOpen(subscriptionId: number, sealed: string): string | undefined;
  sealKey(url: string, team: string, signingKey: string): string;
  /** The target of a delivery for these subscriptions, which share an address; the secret is that of the first. */
  target(rows: readonly [TargetRow, ...TargetRow[]]): Target;
}

export function createSealedSecrets(box: SecretBox): SealedSecrets {
  const secretPlace = (id: number) => `webhooks.subscription:${id}:secret`;
  const keyPlace = (url: string, team: string) => `webhooks.endpoint:${JSON.stringify([url, team])}:signing_key`;
  const seal = (text: string, place: string) => orUnavailable(() => box.seal(text, place));
  const open = (sealed: string, place: string) => orUnavailable(() => box.open(sealed, place));
  return {
    sealSecret: (id, { type, key, value }) => seal([type, key, value].join(","), secretPlace(id)),
    tryOpen(id, sealed) {
      try {
        return box.open(sealed, secretPlace(id));
      } catch (error) {
        if (error instanceof OperatorError) return undefined;
        throw error;
      }
    },
    sealKey: (url, team, signingKey) => seal(signingKey, keyPlace(url, team)),
    target(rows) {
      const [first] = rows;
      const byTeam = new Map(rows.map((row) => [row.team_name, row]));
      return {
        url: first.callback_url,
        secret: first.secret === null ? undefined : parseSecret(open(first.secret, secretPlace(first.id))),
        signingKeys: [...byTeam.values()].flatMap(({ callback_url, team_name, signing_key, previous_key }) =>
          [signing_key, previous_key]
            .filter((sealed) => sealed !== null)
            .map((sealed) => open(sealed, keyPlace(callback_url, team_name))),
        ),
      };
    },
  };
}
