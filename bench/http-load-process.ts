/** The load process: `amount` POSTs over 50 connections, each with its own number in the body; prints requests/s. */
import autocannon from "autocannon";
import type { HttpLoad } from "./http-load.ts";

const { url, key, body, amount } = JSON.parse(process.argv[2] ?? "{}") as HttpLoad;
let number = 0;
let lastResponseAt = 0;
const started = performance.now();
const options: autocannon.Options = {
  url,
  amount,
  connections: 50,
  method: "POST",
  headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  requests: [
    {
      setupRequest(request) {
        const numbered = body.replaceAll("{n}", String(number));
        number += 1;
        return { ...request, body: numbered };
      },
    },
  ],
};
// It reports at the next full second, so the time is taken here.
const result = await new Promise<autocannon.Result>((resolve, reject) => {
  const load = autocannon(options, (error: Error | null, outcome) => (error ? reject(error) : resolve(outcome)));
  load.on("response", () => {
    lastResponseAt = performance.now();
  });
});
if (result["2xx"] !== amount) throw new Error(`${result["2xx"]} of ${amount} requests succeeded`);
process.stdout.write(String(amount / ((lastResponseAt - started) / 1000)));
