/** `millrace demo`: a scenario from source to subscriber that runs on this machine, and checks of its results. */
export { openDemoServer } from "./demo-server.ts";
export { createOutput } from "./output.ts";
export { runDemo } from "./run-demo.ts";
