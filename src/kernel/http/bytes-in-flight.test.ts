/** The bytes of bodies that a process holds: how many, for whom, and until when. */
import { describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { signal, until } from "../../../test/until.ts";
import { createBytesInFlight } from "./bytes-in-flight.ts";

describe("bytes in flight", () => {
  const limits = { keyBytesMax: 10, bytesMax: 25 };

  test("are limited for each key, and free again when they are given back", () => {
    const bytes = createBytesInFlight(limits);
    const giveBack = bytes.take("a", 6);
    bytes.take("a", 4);
    expect(() => bytes.take("a", 1)).toThrow(
      expect.objectContaining({ code: "TOO_MANY_BYTES", status: 503, retryAfterSeconds: 1 }),
    );
    giveBack();
    bytes.take("a", 6);
    bytes.take("b", 10);
  });

  test("are limited in all", () => {
    const bytes = createBytesInFlight(limits);
    for (const key of ["a", "b"]) bytes.take(key, 10);
    const giveBack = bytes.take("c", 5);
    expect(() => bytes.take("d", 1)).toThrow("all callers together");
    giveBack();
    bytes.take("d", 5);
  });

  test("of one body are accepted whatever its size, if nothing else is there", () => {
    const bytes = createBytesInFlight(limits);
    const giveBack = bytes.take("a", 1_000);
    expect(() => bytes.take("a", 1)).toThrow("this key");
    expect(() => bytes.take("b", 1)).toThrow("all callers");
    giveBack();
    bytes.take("b", 1);
  });
});

describe("a request", () => {
  const database = useDatabase();
  const MEBIBYTE = 1_048_576;

  test("gives its bytes back when it is answered, when it fails and when its caller disconnects", async () => {
    const [began, goOn] = [signal(), signal()];
    const http = await startHttp({
      db: database.db,
      bodyLimitBytes: 64 * MEBIBYTE,
      routes: (server) => {
        server.post("/take", { config: { scope: "admin" } }, async () => ({}));
        server.post("/fail", { config: { scope: "admin" } }, async () => {
          throw new Error("on purpose");
        });
        server.post("/wait", { config: { scope: "admin" } }, async () => {
          began.resolve();
          await goOn.promise;
          return {};
        });
      },
    });
    onTestFinished(() => void http.stop()); // The client keeps its connections for a minute.
    const large = JSON.stringify("x".repeat(40 * MEBIBYTE));
    const statuses = async (path: string) => (await http.send(path, { body: large })).status;
    expect([await statuses("/take"), await statuses("/fail"), await statuses("/take")]).toEqual([200, 500, 200]);

    const control = new AbortController();
    const waiting = fetch(`${http.url}/wait`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
      body: large,
      signal: control.signal,
    });
    waiting.catch(() => {});
    await began.promise;
    const refused = await http.send("/take", { body: large });
    expect(refused).toMatchObject({ status: 503, body: { code: "TOO_MANY_BYTES" } });
    expect(refused.headers.get("retry-after")).toBe("1");
    control.abort();
    await until(async () => (await statuses("/take")) === 200, "the bytes of the one that disconnected");
    goOn.resolve();
  });
});
