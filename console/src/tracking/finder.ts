/** Finds files by the beginning of their names. */
import { call } from "../api/client.ts";
import type { Finder } from "../app/found.ts";
import { type FilePage, paths } from "./api.ts";

const FOUND_MAX = 10;

export const fileFinder: Finder = {
  icon: "tracking",
  scope: "pipeline:read",
  async find(query, signal) {
    const { data } = await call<FilePage>(paths.files({ q: query, size: FOUND_MAX }), { signal });
    return data.items.map(({ filename }) => ({
      title: filename,
      to: `/tracking/files/${encodeURIComponent(filename)}`,
    }));
  },
};
