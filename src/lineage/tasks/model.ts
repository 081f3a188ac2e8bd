/**
 * The model that embeds and summarises a tenant's assets. Each tenant chooses one; without a choice nothing is computed or sent
 * anywhere. The built-in pair has to be chosen too.
 */
import { type Static, Type } from "typebox";

const PROVIDERS = ["openai", "builtin"] as const;

export const BUILTIN_EMBEDDING = "hash-v1";
export const BUILTIN_SUMMARY = "rules-v1";

const service = {
  provider: Type.Enum(PROVIDERS, { description: "`openai` is any service that speaks its API." }),
  model: Type.String({ minLength: 1, maxLength: 128, examples: [BUILTIN_EMBEDDING] }),
  endpoint: Type.Optional(
    Type.String({ pattern: "^https?://", maxLength: 2_048, examples: ["https://api.openai.com/v1"] }),
  ),
  credentialRef: Type.Optional(
    Type.String({
      pattern: "^env:[A-Za-z_][A-Za-z0-9_]*$",
      maxLength: 128,
      description: "`env:NAME`, the environment variable that holds the credential; never the credential itself.",
      examples: ["env:OPENAI_API_KEY"],
    }),
  ),
};

export const SummaryModel = Type.Object(service, { additionalProperties: false });
export type SummaryModel = Static<typeof SummaryModel>;

export const EmbeddingModel = Type.Object(
  { ...service, dimension: Type.Integer({ minimum: 8, maximum: 8_192 }) },
  { additionalProperties: false },
);
export type EmbeddingModel = Static<typeof EmbeddingModel>;

export const TenantModel = Type.Object(
  { embedding: Type.Optional(EmbeddingModel), summary: Type.Optional(SummaryModel) },
  { additionalProperties: false },
);
export type TenantModel = Static<typeof TenantModel>;

/**
 * Names what computed a result: two results are comparable if theirs are equal. The endpoint is no part of it, so that a
 * service may move without all being computed again.
 */
export function fingerprintOf(model: EmbeddingModel | SummaryModel): string {
  const { provider, model: name } = model;
  return "dimension" in model ? `${provider}:${name}:${model.dimension}` : `${provider}:${name}`;
}

/** The fingerprints that a tenant's model gives, where it has the one or the other. */
export function fingerprintsOf(model: TenantModel | null): { embedding: string | null; summary: string | null } {
  return {
    embedding: model?.embedding ? fingerprintOf(model.embedding) : null,
    summary: model?.summary ? fingerprintOf(model.summary) : null,
  };
}
