/** Accepts that a window stays incomplete, with the reason that is kept. */
import { useId, useState } from "react";
import { act } from "../api/client.ts";
import { refresh } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { useWords } from "../words/words.ts";
import { paths, REASON_MAX } from "./api.ts";
import styles from "./harvest.module.css";
import { harvestWords } from "./words.ts";

export function AcceptGap({ planId, sliceId }: { planId: string; sliceId: number }) {
  const text = useWords(harvestWords);
  const lacked = useWhyNot("harvest:control");
  const { run, isPending } = useAction();
  const [reason, setReason] = useState("");
  const field = useId();
  const accept = () =>
    run(async () => {
      await act(paths.accept(planId, sliceId), "POST", { reason });
      await refresh({ kind: "plan" }, { kind: "cursor" });
      return text.gapAccepted;
    });
  return (
    <form
      className={styles.section}
      onSubmit={(event) => {
        event.preventDefault();
        if (lacked === undefined && reason.trim() !== "") accept();
      }}
    >
      <h3>{text.acceptGap}</h3>
      <p className={styles.soft}>{text.acceptExplained}</p>
      <label htmlFor={field}>{text.acceptReason}</label>
      <textarea
        id={field}
        className={styles.field}
        rows={2}
        maxLength={REASON_MAX}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
      <div>
        <Button type="submit" isDisabled={reason.trim() === "" || isPending} why={lacked}>
          {text.acceptGap}
        </Button>
      </div>
    </form>
  );
}
