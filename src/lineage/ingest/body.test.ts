import { type AddressInfo, connect } from "node:net";
import { fastify } from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { signal } from "../../../test/until.ts";
import { useEventTexts } from "./body.ts";

test("a caller that hangs up while it waits for its turn is let go", async () => {
  const http = fastify();
  onTestFinished(() => http.close());
  const [waits, failed] = [signal(), signal()];
  let failure: unknown;
  http.setErrorHandler((error, _request, reply) => {
    failure = error;
    failed.resolve();
    return reply.send();
  });
  http.addHook("preParsing", async ({ raw }) => {
    waits.resolve();
    await new Promise((resolve) => raw.once("close", resolve));
  });
  http.decorateRequest("holdBytes", () => () => {});
  useEventTexts(http, async () => 1_000);
  http.post("/", async () => "taken");
  await http.listen({ host: "127.0.0.1", port: 0 });

  const caller = connect((http.server.address() as AddressInfo).port, "127.0.0.1");
  caller.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
  await waits.promise;
  caller.destroy();
  await failed.promise;
  expect(failure).toMatchObject({ message: "the caller disconnected before the body was complete" });
});
