/**
 * Authenticates senders by a signed token (JWT) of a gateway in front of Millrace, which names the source, and the tenant if there
 * is one. Signature, issuer, audience and times are verified first.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import type { Caller } from "../../kernel/auth/scopes.ts";
import { createUnknownKeyLimit } from "../../kernel/auth/unknown-key-limit.ts";
import { storableText } from "../../kernel/data/storable.ts";
import { type ApiError, kernelError, OperatorError } from "../../kernel/errors.ts";
import type { Assertions } from "../../kernel/http/authenticate.ts";
import { type Environment, withEnvironment } from "../../kernel/secrets/environment-references.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { lineageError } from "../catalogue.ts";
import { type GatewaySettings, SHARED_SECRET_ALGORITHMS } from "./gateway-settings.ts";
import { tenantIdOf } from "./tenancy.ts";

export interface GatewayDeps {
  settings: GatewaySettings;
  env: Environment;
  /** Where a relative path in the settings begins. */
  directory: string;
  clock: Clock;
}

const KEY_PAIR_ALGORITHMS = ["RS256", "ES256", "EdDSA"];
const SECRET_BYTES_MIN = 32;
/** A check of a signature costs as much as the rest of a small request, and clients send the same token for minutes. */
const REMEMBER_MS = 5_000;
const REMEMBERED_MAX = 10_000;
const NAME_LENGTH_MAX = 128;
const CLOCK_TOLERANCE_SECONDS = 10;
/** Clients wait 5 s for their whole answer. */
const FETCH_TIMEOUT_MS = 2_000;
/** A token with an unknown key has the key set fetched again, but no more often than this. */
const FETCH_GAP_MS = 5_000;
const RETRY_AFTER_SECONDS = 5;
const UNAVAILABLE = new Set(["ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID", "ERR_JOSE_GENERIC"]);

/** Throws an OperatorError if the settings do not say how to check a token. */
export function createGateway({ settings, env, directory, clock }: GatewayDeps): Assertions {
  const keys = keysOf(settings, env, directory);
  const algorithms = algorithmsOf(settings);
  const remembered = new Map<string, { caller: Caller; until: number }>();
  const unknownTokens = createUnknownKeyLimit({ clock });

  async function payloadOf(token: string, address: string): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, keys, {
        algorithms,
        issuer: settings.issuer,
        audience: settings.audience,
        requiredClaims: ["sub", "exp"],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(clock.now()),
      });
      return payload;
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      if (error instanceof errors.JWTExpired) throw refusal("This token has expired.");
      // The gateway has signed it, so it is no guess; all of its tenants share one address.
      if (error instanceof errors.JWTClaimValidationFailed)
        throw refusal("This token is not meant for this server, or not valid yet.");
      unknownTokens.count(address);
      throw refusal("This token is not one of the gateway's.");
    }
  }

  return {
    async verify(token, address) {
      const id = createHash("sha256").update(token).digest("base64");
      const known = remembered.get(id);
      if (known && known.until > clock.now()) return known.caller;
      const payload = await payloadOf(token, address);
      const expiresAt = ((payload.exp ?? 0) + CLOCK_TOLERANCE_SECONDS) * 1000;
      const caller = { ...callerOf(payload, settings), expiresAtMs: expiresAt };
      if (remembered.size >= REMEMBERED_MAX) remembered.clear();
      remembered.set(id, { caller, until: Math.min(expiresAt, clock.now() + REMEMBER_MS) });
      return caller;
    },
  };
}

function callerOf(payload: JWTPayload, { tenantClaim, sourceClaim }: GatewaySettings): Caller {
  const { [tenantClaim]: tenant = null, [sourceClaim]: source = null } = payload;
  const tenantId = tenant === null ? null : tenantIdOf(tenant);
  if (tenantId === undefined) throw refusal(`This token's claim \`${tenantClaim}\` is no tenant id.`);
  if (source !== null && source !== "GRAVITINO" && source !== "COMPUTE_ENGINE") {
    throw refusal(`This token's claim \`${sourceClaim}\` is neither GRAVITINO nor COMPUTE_ENGINE.`);
  }
  return {
    name: `gateway:${storableText(payload.sub, NAME_LENGTH_MAX)}`,
    keyId: null,
    scopes: ["lineage:write"],
    tenantId,
    source,
    rateLimitPerMinute: null,
  };
}

/** Where the keys come from; the settings name exactly one place. */
function keysOf(settings: GatewaySettings, env: Environment, directory: string): JWTVerifyGetKey {
  const { jwks, jwksFile, jwksUrl, secret } = settings;
  if ([jwks, jwksFile, jwksUrl, secret].filter((place) => place !== undefined).length !== 1) {
    throw new OperatorError("lineage.gateway needs exactly one of jwks, jwksFile, jwksUrl and secret.");
  }
  if (secret !== undefined) {
    const bytes = Buffer.from(withEnvironment(secret, "lineage.gateway.secret", env));
    if (bytes.length < SECRET_BYTES_MIN) {
      throw new OperatorError(`lineage.gateway.secret is too short. Use ${SECRET_BYTES_MIN} bytes or more.`);
    }
    return async () => bytes;
  }
  if (jwksUrl !== undefined) return fetchedKeys(new URL(jwksUrl));
  return jwksFile === undefined ? keySet(jwks, "lineage.gateway.jwks") : keySet(...fileContent(jwksFile, directory));
}

function keySet(jwks: unknown, place: string): JWTVerifyGetKey {
  try {
    return createLocalJWKSet(jwks as JSONWebKeySet);
  } catch {
    throw new OperatorError(`${place} is not a JSON Web Key Set: \`{ "keys": [...] }\`.`);
  }
}

function fileContent(name: string, directory: string): [jwks: unknown, place: string] {
  const path = resolve(directory, name);
  try {
    return [JSON.parse(readFileSync(path, "utf8")), path];
  } catch (error) {
    const reason = messageOf(error);
    throw new OperatorError(`lineage.gateway.jwksFile cannot be used: ${reason}.`);
  }
}

/** That the keys cannot be had says nothing of the token; the client is to come again. */
function fetchedKeys(url: URL): JWTVerifyGetKey {
  const remote = createRemoteJWKSet(url, { timeoutDuration: FETCH_TIMEOUT_MS, cooldownDuration: FETCH_GAP_MS });
  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      if (error instanceof errors.JOSEError && !UNAVAILABLE.has(error.code)) throw error;
      throw lineageError("GATEWAY_KEYS_UNAVAILABLE", { seconds: RETRY_AFTER_SECONDS });
    }
  };
}

/** A public key must never be taken for a shared secret, so the two kinds of algorithms exclude each other. */
function algorithmsOf({ secret, algorithms }: GatewaySettings): string[] {
  const usesSecret = secret !== undefined;
  if (!algorithms) return usesSecret ? ["HS256"] : KEY_PAIR_ALGORITHMS;
  const stranger = algorithms.find(
    (name) => (SHARED_SECRET_ALGORITHMS as readonly string[]).includes(name) !== usesSecret,
  );
  if (stranger) {
    const why = usesSecret ? "does not go with a secret" : "needs lineage.gateway.secret";
    throw new OperatorError(`lineage.gateway.algorithms: ${stranger} ${why}.`);
  }
  return algorithms;
}

function refusal(reason: string): ApiError {
  return kernelError("UNAUTHENTICATED", {}, { reason });
}
