/** Cancels one slice, or the task that executes it, after a question; the rest of the plan goes on. */
import { useState } from "react";
import { act } from "../../api/client.ts";
import { refresh } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Dialog } from "../../parts/dialogs/Dialog.tsx";
import { useWords } from "../../words/words.ts";
import { paths } from "../api.ts";
import { controlWords } from "./words.ts";

export function CancelSlice({ planId, sliceId }: { planId: string; sliceId: number }) {
  const text = useWords(controlWords);
  return <Cancel path={paths.cancelSlice(planId, sliceId)} action={text.cancelSlice} title={text.cancelSliceTitle} />;
}

export function CancelTask({ taskId }: { taskId: number }) {
  const text = useWords(controlWords);
  return <Cancel path={paths.cancelTask(taskId)} action={text.cancelTask} title={text.cancelTaskTitle} />;
}

function Cancel({ path, action, title }: { path: string; action: string; title: string }) {
  const text = useWords(controlWords);
  const lacked = useWhyNot("harvest:control");
  const { run, isPending } = useAction();
  const [isAsking, setAsking] = useState(false);
  const cancel = () =>
    run(async () => {
      await act(path, "POST");
      setAsking(false);
      await refresh({ kind: "plan" }, { kind: "cursor" });
      return text.sliceCancelled;
    });
  return (
    <>
      <Button icon="stop" why={lacked} onPress={() => setAsking(true)}>
        {action}
      </Button>
      <Dialog
        title={title}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        footer={
          <>
            <Button onPress={() => setAsking(false)}>{text.keepIt}</Button>
            <Button kind="danger" isDisabled={isPending} onPress={cancel}>
              {action}
            </Button>
          </>
        }
      >
        <p>{text.cancelExplained}</p>
      </Dialog>
    </>
  );
}
