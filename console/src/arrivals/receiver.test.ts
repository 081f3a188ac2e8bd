import { expect, test } from "vitest";
import { partsOfUrl } from "./receiver.ts";

test.each([
  ["https://hooks.example.org/services/kpi/daily?v=2", "hooks.example.org", "/services/kpi/daily?v=2"],
  ["http://127.0.0.1:40123/", "127.0.0.1:40123", ""],
  ["https://user:secret@hooks.example.org/x", "hooks.example.org", "/x"],
  ["not an address", "not an address", ""],
])("%s is known by its host and its path", (url, host, path) => {
  expect(partsOfUrl(url)).toEqual({ host, path });
});
