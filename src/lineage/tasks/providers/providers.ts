/** Creates the provider of a tenant's model. The settings say which credentials exist and to which hosts each may be sent. */
import type { Environment } from "../../../kernel/secrets/environment-references.ts";
import { BUILTIN_EMBEDDING, BUILTIN_SUMMARY, type EmbeddingModel, type SummaryModel } from "../model.ts";
import type { CredentialSettings } from "../settings.ts";
import { hashEmbedding } from "./hash-embedder.ts";
import { type OpenAiDeps, type OpenAiService, openAiEmbedder, openAiSummariser } from "./openai-provider.ts";
import { type Embedder, ProviderError, type Summariser } from "./provider.ts";
import { summariseSql } from "./sql-summary.ts";

export interface Providers {
  /** Throws a ProviderError if the model cannot be called at all, like the calls do. */
  embedder(model: EmbeddingModel): Embedder;
  summariser(model: SummaryModel): Summariser;
  /** Why a tenant cannot have this model, as a sentence that lacks its full stop; nothing if it can. */
  problemOf(model: EmbeddingModel | SummaryModel): string | undefined;
}

export interface ProvidersDeps extends OpenAiDeps {
  credentials: readonly CredentialSettings[];
  env: Environment;
}

const OPENAI_ENDPOINT = "https://api.openai.com/v1";

export function createProviders(deps: ProvidersDeps): Providers {
  /** Each remembers what it has found out about its service. */
  const embedders = new Map<string, Embedder>();

  function problemOf(model: EmbeddingModel | SummaryModel): string | undefined {
    const { provider, endpoint, credentialRef } = model;
    if (provider === "builtin") {
      const only = "dimension" in model ? BUILTIN_EMBEDDING : BUILTIN_SUMMARY;
      if (model.model !== only) return `The provider builtin has one model for this: ${only}`;
      return endpoint === undefined && credentialRef === undefined
        ? undefined
        : "The provider builtin takes neither endpoint nor credentialRef";
    }
    if (!URL.canParse(endpoint ?? OPENAI_ENDPOINT)) return "The endpoint is not a valid URL";
    const { username, password } = new URL(endpoint ?? OPENAI_ENDPOINT);
    if (username + password !== "") return "The endpoint holds a user or a password: name a credential instead";
    return credentialRef === undefined ? undefined : notAllowed(endpoint ?? OPENAI_ENDPOINT, credentialRef);
  }

  function notAllowed(endpoint: string, credentialRef: string): string | undefined {
    const name = nameOf(credentialRef);
    const known = deps.credentials.filter((credential) => credential.name === name);
    const { origin } = new URL(endpoint);
    if (known.some((credential) => new URL(credential.origin).origin === origin)) return undefined;
    return known.length === 0
      ? `The settings allow no credential ${name}: list it under lineage.tasks.credentials with the origin it may be sent to`
      : `The settings do not let the credential ${name} be sent to ${origin}`;
  }

  function service(model: EmbeddingModel | SummaryModel): OpenAiService {
    const { endpoint = OPENAI_ENDPOINT, credentialRef } = model;
    const problem = problemOf(model); // Asked again: the settings may have changed since the tenant chose it.
    if (problem) throw new ProviderError("REFUSED", `${problem}.`);
    if (credentialRef === undefined) return { endpoint, model: model.model, credential: undefined };
    const credential = deps.env[nameOf(credentialRef)];
    if (credential) return { endpoint, model: model.model, credential };
    throw new ProviderError(
      "CREDENTIAL_MISSING",
      `The environment variable ${nameOf(credentialRef)}, which holds the model's credential, is not set in this process.`,
    );
  }

  return {
    problemOf,
    embedder(model) {
      if (model.provider === "builtin") return builtinEmbedder(model.dimension);
      const used = service(model);
      const key = JSON.stringify([used.endpoint, used.model, used.credential, model.dimension]);
      const known = embedders.get(key) ?? openAiEmbedder(deps, used, model.dimension);
      embedders.set(key, known);
      return known;
    },
    summariser: (model) =>
      model.provider === "builtin"
        ? { summarise: (text) => Promise.resolve(summariseSql(text)) }
        : openAiSummariser(deps, service(model)),
  };
}

function builtinEmbedder(dimension: number): Embedder {
  return {
    async embed(texts) {
      const vectors: number[][] = [];
      for (const text of texts) {
        vectors.push(hashEmbedding(text, dimension));
        await new Promise(setImmediate); // A long text takes a millisecond or two, a batch of them would be felt by requests.
      }
      return vectors;
    },
  };
}

function nameOf(credentialRef: string): string {
  return credentialRef.slice("env:".length);
}
