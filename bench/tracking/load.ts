/** The load process: one POST for each shard of a file, over 50 connections; prints requests/s. */
import autocannon from "autocannon";

const { url, key, filename, amount } = JSON.parse(process.argv[2] ?? "{}") as {
  url: string;
  key: string;
  filename: string;
  amount: number;
};
let shard = 0;
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
        const body = JSON.stringify({ filename, shard });
        shard += 1;
        return { ...request, body };
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
