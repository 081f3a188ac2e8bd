/**
 * Which addresses may be called. To prevent SSRF, the IP address is checked when the connection is made, so DNS rebinding
 * has no effect.
 */
import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { OutboundRefused } from "./outbound-errors.ts";
import { hostPortOf, parseHostPort } from "./outbound-url.ts";
import { isPublic } from "./public-address.ts";

export interface GuardOptions {
  /** Whether addresses that are not public may be called, or the `host:port` of those that may. */
  allowPrivate: boolean | readonly string[];
  /** The setting that allows it, for the sentence of a refusal. */
  setting?: string;
  /** Refuses http, except to what `allowPrivate` names. */
  httpsOnly?: boolean;
  /** The certificates to trust, instead of those that come with Node. */
  ca?: readonly string[];
}

export interface Guard {
  /** Throws OutboundRefused where the URL itself shows that it may not be called. */
  check(url: URL): void;
  /** Refuses a connection to an address that may not be called. */
  connector(timeoutMs: number): buildConnector.connector;
}

export function createGuard({ allowPrivate, setting, httpsOnly = false, ca }: GuardOptions): Guard {
  const named = new Set(typeof allowPrivate === "boolean" ? [] : allowPrivate.map(asHostPort));
  const isAllowed = (hostPort: string) => allowPrivate === true || named.has(hostPort);

  function refusal(sentence: string, hostPort: string): OutboundRefused {
    const change = typeof allowPrivate === "boolean" ? `set ${setting}=true` : `add ${hostPort} to ${setting}`;
    return new OutboundRefused(`${sentence}${setting === undefined ? "" : `; ${change} to permit it`}.`);
  }

  /** An IP address needs no lookup. (The URL parser has turned forms such as 0x7f.1 into 127.0.0.1.) */
  function refusalOfAddress(hostname: string, hostPort: string): OutboundRefused | undefined {
    if (isIP(hostname) === 0 || isAllowed(hostPort) || isPublic(hostname)) return undefined;
    return refusal(`${hostname} is not a public address`, hostPort);
  }

  return {
    check(url) {
      const hostPort = hostPortOf(url);
      if (httpsOnly && url.protocol === "http:" && !isAllowed(hostPort)) {
        throw refusal("Only https URLs are allowed, and this one begins with http:", hostPort);
      }
      const refused = refusalOfAddress(url.hostname.replace(/^\[(.*)\]$/, "$1"), hostPort);
      if (refused) throw refused;
    },

    connector(timeoutMs) {
      const options = { timeout: timeoutMs, ...(ca === undefined ? {} : { ca: [...ca] }) };
      const connect = buildConnector(options);
      const connectToPublic = buildConnector({ ...options, lookup: publicOnly(systemLookup) });
      return (target, callback) => {
        const hostPort = hostPortOf(target);
        if (isAllowed(hostPort)) return connect(target, callback);
        const refused = refusalOfAddress(target.hostname, hostPort);
        if (refused) return callback(refused, null);
        connectToPublic(target, (...result) => {
          const [error] = result;
          if (error instanceof NotPublic) callback(refusal(error.message, hostPort), null);
          else callback(...result);
        });
      };
    },
  };
}

class NotPublic extends Error {}

/** Keeps only the public addresses of a lookup; an error if there are none. */
export function publicOnly(lookup: typeof systemLookup): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const addresses = found.filter(({ address }) => isPublic(address));
      const [first] = addresses;
      if (!first) {
        const refused = found.map(({ address }) => address).join(", ");
        callback(new NotPublic(`${hostname} resolves to ${refused}, which is not a public address`), []);
      } else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function asHostPort(text: string): string {
  const hostPort = parseHostPort(text);
  if (hostPort === undefined) throw new Error(`"${text}" is not host:port`);
  return hostPort;
}
