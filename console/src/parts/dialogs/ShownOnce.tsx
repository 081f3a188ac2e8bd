/** A secret that the server tells only now, to be copied. */
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { toast, toastError } from "../actions/toasts.tsx";
import { copyText } from "../browser-features.ts";
import { Button } from "../controls/Button.tsx";
import { Dialog } from "./Dialog.tsx";

interface ShownOnceProps {
  title: string;
  /** What it is, and that it is not shown again. */
  note: string;
  secret: string;
  onClose(): void;
}

export function ShownOnce({ title, note, secret, onClose }: ShownOnceProps) {
  const text = useWords(common);
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      footer={
        <>
          <Button icon="copy" onPress={() => void copyText(secret).then(() => toast(text.copied), toastError)}>
            {text.copy}
          </Button>
          <Button kind="primary" onPress={onClose}>
            {text.close}
          </Button>
        </>
      }
    >
      <p>{note}</p>
      <code>{secret}</code>
    </Dialog>
  );
}
