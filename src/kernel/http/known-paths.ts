/** The paths of all routes, for the answer to a request that no route takes: 405 with the right methods, or 404 with a hint. */
import type { FastifyInstance } from "fastify";
import { nearest } from "../nearest.ts";
import { shownRoute } from "./action-path.ts";

/** A path that may end in an action, `/runs/1:stop`. */
export const ACTION = /:[^/]*$/;

export interface KnownPaths {
  /** The methods that a path takes, if there is such a path. */
  methodsAt(path: string): string[] | undefined;
  /** "Did you mean ...?" for a path that resembles a known one; with a method, one that takes it. */
  nearestTo(path: string, method?: string): string | undefined;
}

interface KnownPath {
  pattern: RegExp;
  /** Of what is not a parameter: the larger, the more exactly the pattern fits. */
  literalLength: number;
  /** A misspelt action, `/runs/1:stpo`, fits the path of the resource, and is not one. */
  endsInParameter: boolean;
  methods: Set<string>;
}

/** Call it before there are routes. */
export function knownPaths(http: FastifyInstance): KnownPaths {
  const paths = new Map<string, KnownPath>();
  http.addHook("onRoute", ({ url, method }) => {
    const shown = shownRoute(url);
    const path = paths.get(shown) ?? parsePath(shown);
    for (const name of [method].flat()) path.methods.add(name);
    paths.set(shown, path);
  });

  return {
    methodsAt(path) {
      const isAction = ACTION.test(path);
      const [best] = [...paths.values()]
        .filter(({ pattern, endsInParameter }) => pattern.test(path) && !(isAction && endsInParameter))
        .toSorted((a, b) => b.literalLength - a.literalLength);
      return best && [...best.methods].toSorted();
    },
    nearestTo(path, method) {
      const meant = [...paths].filter(([, { methods }]) => method === undefined || methods.has(method));
      const near = nearest(
        path,
        meant.map(([shown]) => shown),
      );
      const methods = [...(paths.get(near ?? "")?.methods ?? [])].filter((name) => name !== "HEAD");
      return near === undefined ? undefined : `Did you mean ${methods.join(" or ")} ${near}?`;
    },
  };
}

/** `/runs/:runId:stop` and `/files/*`. A colon that begins no parameter is written twice where no parameter is before it. */
function parsePath(shown: string): KnownPath {
  const parts = shown.split(/(::|\/:\w+|\*)/);
  const literals = parts.filter((_, index) => index % 2 === 0);
  const source = parts
    .map((part, index) => {
      if (index % 2 === 0) return escaped(part);
      return part === "::" ? ":" : part === "*" ? ".*" : "/[^/]+";
    })
    .join("");
  return {
    pattern: new RegExp(`^${source}$`),
    literalLength: literals.join("").length,
    endsInParameter: /\/:\w+$/.test(shown),
    methods: new Set(),
  };
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
