/** Asks before a write, and says what it means. Escape and a click beside it leave everything as it is. */
import type { ReactNode } from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import { Dialog } from "./Dialog.tsx";

interface AskProps {
  title: string;
  children: ReactNode;
  /** The text of the button that does it. */
  confirm: string;
  kind?: "primary" | "danger";
  isDisabled?: boolean;
  isPending?: boolean;
  onConfirm(): void;
  onClose(): void;
}

export function Ask({
  title,
  children,
  confirm,
  kind = "primary",
  isDisabled,
  isPending,
  onConfirm,
  onClose,
}: AskProps) {
  const text = useWords(common);
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>{text.cancel}</Button>
          <Button kind={kind} isDisabled={isDisabled ?? false} isPending={isPending ?? false} onPress={onConfirm}>
            {confirm}
          </Button>
        </>
      }
    >
      <p>{children}</p>
    </Dialog>
  );
}
