/** Puts a credential into a request: a header, a parameter, or a field of the body. */
import { headerText, RenderError } from "./render-values.ts";
import type { AuthSpec } from "./snapshot.ts";

export interface Credential {
  value: string;
  version: number;
}

/** The parts of a request that a credential may go to. */
export interface Authorize {
  headers: Record<string, string>;
  address: string;
  query: [string, string][];
  form: [string, string][] | undefined;
  json: unknown;
}

/** Changes the request, and returns the secrets that it has now. Without a value, a request is anonymous where that is allowed. */
export function compileAuth(auth: AuthSpec): (request: Authorize, credential: Credential | undefined) => string[] {
  if (auth.type === "NONE") return () => [];
  const { type, location, name, required } = auth;
  const field = `credentials.${auth.credential}`;
  return (request, credential) => {
    if (!credential) {
      if (required) throw new RenderError(field, "It has no value, and requests without it are not allowed.");
      return [];
    }
    const value = type === "BEARER" && location === "HEADER" ? `Bearer ${credential.value}` : credential.value;
    if (location === "HEADER") {
      request.headers[name.toLowerCase()] = headerText(value, field);
    } else if (location === "QUERY") {
      request.address = withoutParameter(request.address, name);
      request.query = [...without(request.query, name), [name, value]];
    } else if (request.json === undefined) {
      request.form = [...without(request.form ?? [], name), [name, value]];
    } else {
      request.json = { ...(request.json as object), [name]: value };
    }
    return [credential.value];
  };
}

function without(pairs: readonly [string, string][], name: string): [string, string][] {
  return pairs.filter(([own]) => own !== name);
}

/** The URL of a next page may repeat the credential. */
function withoutParameter(address: string, name: string): string {
  if (!address.includes("?")) return address;
  const url = new URL(address);
  if (!url.searchParams.has(name)) return address;
  url.searchParams.delete(name);
  return url.href;
}
