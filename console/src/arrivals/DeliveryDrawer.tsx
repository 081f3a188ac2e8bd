/** One delivery: what was sent, the response to each attempt, and how the receiver can verify the signature. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Ask } from "../parts/dialogs/Ask.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { CodeText } from "../parts/page/CodeText.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time, useNow } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type Delivery, type DeliveryDetail, paths } from "./api.ts";
import styles from "./arrivals.module.css";
import { DeliveryReason, EndpointState, hasState } from "./EndpointState.tsx";
import { DELIVERY_STATES } from "./states.ts";
import { arrivals } from "./words.ts";

const VERIFY = `import { createHmac, timingSafeEqual } from "node:crypto";

/** \`body\` is the raw text of the request, before any parsing. */
export function isGenuine(headers, body, signingKey) {
  const { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signatures } = headers;
  if (Math.abs(Date.now() / 1000 - Number(time)) > 300) return false;
  const key = Buffer.from(signingKey.replace("whsec_", ""), "base64");
  const expected = Buffer.from(\`v1,\${createHmac("sha256", key).update(\`\${id}.\${time}.\${body}\`).digest("base64")}\`);
  const sent = String(signatures).split(" ").map((one) => Buffer.from(one));
  return sent.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
}`;

export function DeliveryDrawer({ id, onClose }: { id: string; onClose(): void }) {
  const text = useWords(arrivals);
  const shared = useWords(common);
  const lacked = useWhyNot("kpi:write");
  const { isPending, run } = useAction();
  const result = useLive<DeliveryDetail>(paths.delivery(id), [{ kind: "delivery" }]);
  const now = useNow();
  const [isAsking, setAsking] = useState(false);
  const again = () => {
    setAsking(false);
    run(async () => {
      await act(paths.redeliver(id), "POST");
      await refresh({ kind: "delivery" });
      return text.redelivered;
    });
  };
  const isDelivered = result.data?.status === "DELIVERED";
  return (
    <Drawer
      title={id}
      onClose={onClose}
      actions={
        <Button
          icon="retry"
          isPending={isPending}
          why={lacked}
          isDisabled={!result.data}
          onPress={() => (isDelivered ? setAsking(true) : again())}
        >
          {text.redeliver}
        </Button>
      }
    >
      {isAsking && (
        <Ask title={text.redeliver} confirm={text.redeliver} onConfirm={again} onClose={() => setAsking(false)}>
          {text.redeliverDelivered}
        </Ask>
      )}
      <Loaded result={result}>
        {(one) => (
          <>
            <Fields
              rows={[
                [text.status, <StateMark key="status" state={DELIVERY_STATES[one.status]} label={text[one.status]} />],
                [shared.reason, one.status === "DELIVERED" ? null : <DeliveryReason key="reason" one={one} />],
                [text.endpoint, one.callbackUrl ?? one.alert],
                [text.endpointState, hasState(one.endpoint, now) && <EndpointState key="endpoint" {...one.endpoint} />],
                [
                  text.subscriptions,
                  one.subscriptionIds.length > 0 && (
                    <span key="subscriptions" className={styles.pair}>
                      {one.subscriptionIds.map((number) => (
                        <Link
                          key={number}
                          to="/arrivals/deliveries"
                          search={{ tab: "subscriptions", id: String(number) }}
                        >
                          {number}
                        </Link>
                      ))}
                    </span>
                  ),
                ],
                [
                  text.model,
                  one.modelId === null || one.opTime === null ? null : (
                    <Link key="model" to="/arrivals" search={{ tab: "models", row: one.modelId, at: one.opTime }}>
                      {one.modelId} {one.opTime}
                    </Link>
                  ),
                ],
                [text.nextTry, one.nextAttemptAt === null ? null : <Time key="next" at={nextTry(one)} due />],
              ]}
            />
            <section className={styles.section}>
              <h3>{text.attemptLog}</h3>
              {one.log.length === 0 && <p className={styles.soft}>{text.noAttempts}</p>}
              <ul className={styles.list}>
                {one.log.toReversed().map((attempt) => (
                  <li key={attempt.attempt} className={styles.item}>
                    <span className={styles.pair}>
                      <StateMark
                        state={attempt.error === null ? "success" : "failed"}
                        label={`${attempt.attempt}. ${attempt.statusCode ?? ""}`}
                      />
                      <Time at={attempt.at} />
                      <span className={styles.soft}>{durationText(attempt.durationMs)}</span>
                    </span>
                    {attempt.error !== null && <span className={styles.reason}>{attempt.error}</span>}
                    {attempt.answer !== null && attempt.answer !== "" && (
                      <details open={attempt === lastFailed(one.log)}>
                        <summary>{text.response}</summary>
                        <CodeText>{attempt.answer}</CodeText>
                      </details>
                    )}
                  </li>
                ))}
              </ul>
            </section>
            <Code title={text.payload} code={JSON.stringify(one.payload, null, 2)} />
            <Code
              title={text.request}
              code={[
                `${one.request.method} ${one.request.url ?? one.alert ?? ""}`,
                ...Object.entries(one.request.headers).map(([name, value]) => `${name}: ${value}`),
              ].join("\n")}
            />
            <Code title={text.verify} code={VERIFY} />
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

/** The attempt whose response is most often looked for. */
function lastFailed(log: DeliveryDetail["log"]): DeliveryDetail["log"][number] | undefined {
  return log.findLast(({ error }) => error !== null);
}

/** Not before the receiver takes anything again. */
function nextTry({ nextAttemptAt, endpoint: { heldUntil } }: Delivery): string | null {
  return (
    [nextAttemptAt, heldUntil]
      .filter((at) => at !== null)
      .toSorted()
      .at(-1) ?? null
  );
}

function Code({ title, code }: { title: string; code: string }) {
  if (code === "") return null;
  return (
    <section className={styles.section}>
      <h3>{title}</h3>
      <CodeText>{code}</CodeText>
    </section>
  );
}
