// Preloaded into the server that `npm run fuzz` starts: generated definitions contain addresses, and none of them is called.
import { Socket } from "node:net";

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;
const connect = Socket.prototype.connect;

Socket.prototype.connect = function (...args) {
  const [first, second] = Array.isArray(args[0]) ? args[0] : args;
  const { path, host = "localhost" } = typeof first === "object" ? first : { host: second };
  if (path !== undefined || typeof first === "string" || LOOPBACK.test(host)) return Reflect.apply(connect, this, args);
  queueMicrotask(() => this.destroy(new Error(`${host} is not on this machine`)));
  return this;
};
