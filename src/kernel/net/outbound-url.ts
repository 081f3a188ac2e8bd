/** Reads the URL of a request and of a proxy. A refusal does not repeat the URL, which may contain a password. */
import { urlToHttpOptions } from "node:url";
import { OutboundRefused } from "./outbound-errors.ts";

export function parseUrl(text: string): URL {
  if (!URL.canParse(text))
    throw new OutboundRefused("The URL is not valid; write a complete one, such as https://host/path.");
  const url = new URL(text);
  if (url.protocol === "http:" || url.protocol === "https:") return url;
  throw new OutboundRefused(`Only http and https URLs are allowed, and this one begins with ${url.protocol}`);
}

/** Only http: what is secret is encrypted between us and the target, inside the tunnel. Undefined if it is none. */
export function proxyUrlOf(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === "http:" && url.pathname === "/" && url.search === "" && url.hash === "" ? url : undefined;
}

export function parseProxyUrl(text: string): URL {
  const url = proxyUrlOf(text);
  if (url) return url;
  throw new OutboundRefused("The URL of the proxy is not valid; write it as http://host:port.");
}

/** The value of a header for the user and password of the URL, if it has any. */
export function basicCredentials(url: URL): string | undefined {
  if (url.username === "" && url.password === "") return undefined;
  let credentials: string;
  try {
    credentials = String(urlToHttpOptions(url).auth);
  } catch {
    throw new OutboundRefused("The user or password in the URL has a % that is not followed by two hex digits.");
  }
  return `Basic ${Buffer.from(credentials).toString("base64")}`;
}

/** With the port, also where it is the scheme's own: `example.org:443`, `[::1]:80`. */
export function hostPortOf({ protocol, hostname, port }: { protocol: string; hostname: string; port: string }): string {
  const host = hostname.includes(":") && !hostname.startsWith("[") ? `[${hostname}]` : hostname;
  return `${host}:${port || (protocol === "https:" ? 443 : 80)}`;
}

/** The `host:port` of a setting as `hostPortOf` writes it; nothing if it is none. */
export function parseHostPort(text: string): string | undefined {
  if (!/^[^/?#@\\]+:\d{1,5}$/.test(text) || !URL.canParse(`http://${text}`)) return undefined;
  return hostPortOf(new URL(`http://${text}`));
}
