/** The load process: posts events of one tenant over so many connections, and prints what became of it as JSON. */
import autocannon from "autocannon";
import type { LineageLoad, LoadResult } from "./load.ts";
import { sparkEvent } from "./spark-events.ts";

const load = JSON.parse(process.argv[2] ?? "{}") as LineageLoad;
const { url, key, events, batch, connections, spark } = load;
let sent = 0;
let lastResponseAt = 0;
const latencies: number[] = [];
const started = performance.now();
const options: autocannon.Options = {
  url,
  amount: Math.ceil(events / batch),
  connections,
  method: "POST",
  headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  requests: [
    {
      setupRequest(request) {
        const texts = Array.from({ length: batch }, (_, index) => sparkEvent(spark, sent + index));
        sent += batch;
        return { ...request, body: batch === 1 ? texts[0] : `[${texts.join()}]` };
      },
    },
  ],
};
const result = await new Promise<autocannon.Result>((resolve, reject) => {
  const run = autocannon(options, (error: Error | null, outcome) => (error ? reject(error) : resolve(outcome)));
  run.on("response", (_client, _status, _bytes, ms) => {
    lastResponseAt = performance.now();
    latencies.push(ms);
  });
});
const requests = Math.ceil(events / batch);
if (result["2xx"] !== requests) throw new Error(`${result["2xx"]} of ${requests} requests succeeded`);
const outcome: LoadResult = { perSecond: events / ((lastResponseAt - started) / 1000), latencies };
process.stdout.write(JSON.stringify(outcome));
