/** A server that stops, and connections that were opened in advance. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { signal } from "../../../test/until.ts";

const database = useDatabase();

test("a stop closes connections without a request and waits for the requests of the others", async () => {
  const [began, goOn] = [signal(), signal()];
  const http = await startHttp({
    db: database.db,
    routes: (server) =>
      void server.get("/wait", { config: { scope: "admin" } }, async () => {
        began.resolve();
        await goOn.promise;
        return {};
      }),
  });
  const [unused, used] = [connect(http.port, "127.0.0.1"), connect(http.port, "127.0.0.1")];
  onTestFinished(() => [unused, used].forEach((socket) => void socket.destroy()));
  const closed = once(unused.resume(), "close");
  used.write(`GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n\r\n`);
  const answered = once(used, "data") as Promise<[Buffer]>;
  await began.promise;
  const stopped = http.stop();
  await closed;
  goOn.resolve();
  expect(String((await answered)[0])).toMatch(/^HTTP\/1\.1 200 /);
  await stopped;
});
