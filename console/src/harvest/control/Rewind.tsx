/** Sends a cursor back. What that means is counted by the server and shown before it can be confirmed. */
import { useState } from "react";
import { act } from "../../api/client.ts";
import { refresh } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { toast } from "../../parts/actions/toasts.tsx";
import { Button } from "../../parts/controls/Button.tsx";
import { FormDialog } from "../../parts/dialogs/FormDialog.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { paths, REASON_MAX, type Rewound } from "../api.ts";
import styles from "../harvest.module.css";
import { useEdgeText } from "../WindowText.tsx";
import { controlWords } from "./words.ts";

const EDGE_MAX = 40;

interface RewindProps {
  source: string;
  namespace: string;
  operation: string;
}

export function Rewind(cursor: RewindProps) {
  const text = useWords(controlWords);
  const lacked = useWhyNot("harvest:control");
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button why={lacked} onPress={() => setOpen(true)}>
        {text.rewind}
      </Button>
      {isOpen && <RewindDialog {...cursor} onClose={() => setOpen(false)} />}
    </>
  );
}

function RewindDialog({ source, namespace, operation, onClose }: RewindProps & { onClose(): void }) {
  const text = useWords(controlWords);
  const edge = useEdgeText();
  const { number } = useFormats();
  const [preview, setPreview] = useState<Rewound>();
  return (
    <FormDialog
      title={text.rewindTitle(namespace)}
      fields={[
        { name: "to", label: text.rewindTo, maxLength: EDGE_MAX, placeholder: "2026-08-01" },
        { name: "reason", label: text.rewindReason, maxLength: REASON_MAX },
      ]}
      submit={preview ? text.rewind : text.preview}
      // What is confirmed is what was shown.
      onChange={(name) => {
        if (name === "to") setPreview(undefined);
      }}
      onClose={onClose}
      onSubmit={async (values) => {
        const isDry = preview === undefined;
        const rewound = await act<Rewound>(paths.rewind(source, namespace, isDry), "POST", { ...values, operation });
        if (isDry) {
          setPreview(rewound);
          return;
        }
        await refresh({ kind: "cursor" }, { kind: "plan" });
        toast(text.rewound(edge(rewound.to)));
        onClose();
      }}
    >
      <p className={styles.soft}>{text.rewindExplained}</p>
      <p aria-live="polite">
        {preview && text.wouldRewind(edge(preview.from), edge(preview.to), preview.slices, number(preview.slices))}
      </p>
    </FormDialog>
  );
}
