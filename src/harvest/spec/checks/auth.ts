/** Authentication: it fits the endpoint and the method, and its credential exists. */
import { didYouMean } from "../../../kernel/nearest.ts";
import { HEADER_NAME } from "../render-values.ts";
import type { CheckInput, Finding } from "./check.ts";

/** 4.17, number 1: an endpoint that requires authentication is never asked anonymously. */
export function* authIsAsRequired({ endpoint, policy: { auth } }: CheckInput): Iterable<Finding> {
  if (!endpoint.requiresAuth) return;
  if (auth.type === "NONE") {
    yield { field: "auth.type", reason: "The endpoint requires authentication, and `auth.type` is NONE." };
  } else if (auth.required === false) {
    yield {
      field: "auth.required",
      reason:
        "The endpoint requires authentication, so requests may not be anonymous while the credential has no value.",
    };
  }
}

export function* authIsSupported({ policy: { auth } }: CheckInput): Iterable<Finding> {
  if (auth.type === "OAUTH2") {
    yield { field: "auth.type", reason: "OAUTH2 is not supported yet. Use API_KEY or BEARER." };
  }
  if (auth.type === "CUSTOM") {
    yield { field: "auth.type", reason: "CUSTOM is not supported yet. Use API_KEY or BEARER." };
    if (!auth.signingHook) yield { field: "auth.signingHook", reason: "CUSTOM needs the name of a signing hook." };
  } else if (auth.signingHook !== undefined) {
    yield { field: "auth.signingHook", reason: "Only CUSTOM has a signing hook." };
  }
}

/** 4.17, number 9: the credential of the definition exists. */
export function* authIsComplete({ definition, policy: { auth } }: CheckInput): Iterable<Finding> {
  if (auth.type !== "API_KEY" && auth.type !== "BEARER") return;
  const known = Object.keys(definition.credentials ?? {});
  if (auth.credential === undefined) {
    yield { field: "auth.credential", reason: `${auth.type} needs the name of a credential of the source.` };
  } else if (!known.includes(auth.credential)) {
    yield {
      field: "auth.credential",
      reason: `The source has no credential \`${auth.credential}\`.${didYouMean(auth.credential, known)}`,
    };
  }
  if (auth.type === "BEARER") return; // Has defaults: the header `Authorization`.
  if (auth.location === undefined) yield { field: "auth.location", reason: "API_KEY needs HEADER, QUERY or BODY." };
  if (auth.name === undefined) {
    yield { field: "auth.name", reason: "API_KEY needs the name of its header, parameter or form field." };
  }
}

export function* authFitsRequest({ endpoint, policy: { auth, http, params } }: CheckInput): Iterable<Finding> {
  if (auth.type !== "API_KEY" && auth.type !== "BEARER") return;
  const { location = "HEADER", name = "authorization" } = auth;
  if (location === "BODY" && endpoint.method !== "POST") {
    yield { field: "auth.location", reason: `A ${endpoint.method} request has no body to send a credential in.` };
  }
  if (location === "HEADER" && !HEADER_NAME.test(name)) {
    yield { field: "auth.name", reason: "It is not the name of a header." };
  }
  const others: Record<string, object | undefined> = { HEADER: http.headers, QUERY: http.query, BODY: http.form };
  const same = (other: string) => (location === "HEADER" ? other.toLowerCase() === name.toLowerCase() : other === name);
  const twice = [
    ...Object.keys(others[location] ?? {}),
    ...params.filter((param) => param.location === location).map((param) => param.name),
  ].find(same);
  if (twice !== undefined) {
    yield { field: "auth.name", reason: `\`${twice}\` is sent by the credential and by a template or parameter.` };
  }
}

/** 4.17, number 9: what is stored and logged is redacted. */
export function* redactionIsOn({ policy }: CheckInput): Iterable<Finding> {
  if (!policy.redact) {
    yield {
      field: "redact",
      reason: "Secrets in requests and responses are always redacted; it cannot be turned off.",
    };
  }
}
