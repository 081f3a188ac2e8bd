/** A receiver in a process of its own: answers every POST at once, but for `/hang`, which it never answers. Prints its port. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((request, response) => {
  request.resume();
  if (request.url === "/hang") return;
  request.on("end", () => response.end("ok"));
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.on("disconnect", () => process.exit(0));
