/** The settings under `lineage.gateway` in `millrace.yaml`: how the tokens of a gateway are verified. */
import { type Static, Type } from "typebox";

/** A secret is shared with whoever signs, so it takes part only where one is configured. */
export const SHARED_SECRET_ALGORITHMS = ["HS256", "HS384", "HS512"] as const;
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  ...SHARED_SECRET_ALGORITHMS,
] as const;

/** The keys come from exactly one of `jwks`, `jwksFile`, `jwksUrl` and `secret`. */
export const GatewaySettings = Type.Object(
  {
    jwks: Type.Optional(
      Type.Object(
        { keys: Type.Array(Type.Object({}, { additionalProperties: true }), { minItems: 1, maxItems: 100 }) },
        { additionalProperties: false, secret: true },
      ),
    ),
    /** A file with a JSON Web Key Set, beside this one unless the path is absolute. It is read at the start. */
    jwksFile: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
    /** Where the gateway publishes its keys. They are fetched when they are needed. */
    jwksUrl: Type.Optional(Type.String({ pattern: "^https?://", maxLength: 2_048 })),
    /** `${env.NAME}`, and nothing else: a settings file is read by many. */
    secret: Type.Optional(Type.String({ pattern: "^\\$\\{env\\.[A-Za-z_]\\w*\\}$", maxLength: 256, secret: true })),
    issuer: Type.String({ minLength: 1, maxLength: 1_024 }),
    audience: Type.String({ minLength: 1, maxLength: 1_024 }),
    tenantClaim: Type.String({ minLength: 1, maxLength: 256, default: "tenant_id" }),
    sourceClaim: Type.String({ minLength: 1, maxLength: 256, default: "source" }),
    /** Unset: RS256, ES256 and EdDSA, or HS256 with a secret. */
    algorithms: Type.Optional(Type.Array(Type.Enum(ALGORITHMS), { minItems: 1, maxItems: ALGORITHMS.length })),
  },
  { additionalProperties: false },
);
export type GatewaySettings = Static<typeof GatewaySettings>;
