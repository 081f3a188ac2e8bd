/** What a snapshot compiles to for its runs: requests and decoders, read and made once for each snapshot in a process. */
import { messageOf } from "../../kernel/text/message-of.ts";
import { compileDecoder, type Decoder } from "../decode/index.ts";
import { compileFragments, type Fragments } from "../slice/fragments.ts";
import type { Part } from "../slice/parts.ts";
import { compileRequest, type RenderedRequest, type RequestContext } from "../spec/render.ts";
import { dimensionsOf, type EndpointSpec, type Snapshot } from "../spec/snapshot.ts";

export interface CompiledEndpoint {
  spec: EndpointSpec;
  render: (context: RequestContext) => RenderedRequest;
  decoder: Decoder;
  /** What requests for a part of a slice have as `parts`. */
  fragments: (part: Part | null) => Fragments;
}

export interface CompiledSource {
  snapshot: Snapshot;
  list: CompiledEndpoint;
  /** Fetches the records of ids. */
  detail?: CompiledEndpoint;
}

/** `unusable` says why this version cannot compile the snapshot. */
export type Compiled = CompiledSource | { unusable: string };

const KEPT_MAX = 200;

/** The compiled form of snapshots by fingerprint; the ones used longest ago are dropped. Answers without those that are not there. */
export function createCompiledSources(
  read: (fingerprints: readonly string[]) => Promise<ReadonlyMap<string, Snapshot>>,
): (fingerprints: readonly string[]) => Promise<ReadonlyMap<string, Compiled>> {
  const kept = new Map<string, Compiled>();
  return async (fingerprints) => {
    const wanted = [...new Set(fingerprints)];
    const unread = wanted.filter((one) => !kept.has(one));
    const snapshots = unread.length > 0 ? await read(unread) : new Map<string, Snapshot>();
    const found = new Map<string, Compiled>();
    for (const fingerprint of wanted) {
      const snapshot = snapshots.get(fingerprint);
      const compiled = kept.get(fingerprint) ?? (snapshot && attempted(snapshot));
      if (!compiled) continue;
      found.set(fingerprint, compiled);
      kept.delete(fingerprint);
      kept.set(fingerprint, compiled);
    }
    for (const oldest of [...kept.keys()].slice(0, Math.max(0, kept.size - KEPT_MAX))) kept.delete(oldest);
    return found;
  };
}

function attempted(snapshot: Snapshot): Compiled {
  try {
    return compileSource(snapshot);
  } catch (error) {
    return { unusable: messageOf(error) };
  }
}

export function compileSource(snapshot: Snapshot): CompiledSource {
  const { spec, detail } = snapshot;
  return { snapshot, list: compileEndpoint(spec), ...(detail ? { detail: compileEndpoint(detail) } : {}) };
}

function compileEndpoint(spec: EndpointSpec): CompiledEndpoint {
  return {
    spec,
    render: compileRequest(spec),
    decoder: compileDecoder(spec),
    fragments: compileFragments(dimensionsOf(spec.slicing)),
  };
}
