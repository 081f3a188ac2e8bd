/** Language, theme, time zone and signing out. */
import { lazy, Suspense, useState } from "react";
import { toastError } from "../parts/actions/toasts.tsx";
import { Button } from "../parts/controls/Button.tsx";
import { Select } from "../parts/controls/Select.tsx";
import { Dialog } from "../parts/dialogs/Dialog.tsx";
import { language, useWords } from "../words/words.ts";
import type { Preference } from "./preference.ts";
import { THEMES, theme, usePreference } from "./preferences.ts";
import { signOut, useSessionStatus } from "./session.ts";
import { shell } from "./words.ts";

const ZoneField = lazy(() => import("./ZoneField.tsx"));

export function PreferencesMenu() {
  const text = useWords(shell);
  const status = useSessionStatus();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="quiet" icon="user" label={text.settings} onPress={() => setOpen(true)} />
      <Dialog
        title={text.settings}
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        footer={<Button onPress={() => void signOut().catch(toastError)}>{text.signOut}</Button>}
      >
        {"session" in status && <p>{text.signedInAs(status.session.name)}</p>}
        <Choice
          label={text.language}
          of={language}
          options={[
            ["en", "English"],
            ["zh", "中文"],
          ]}
        />
        <Choice label={text.theme} of={theme} options={THEMES.map((one) => [one, text[one]])} />
        <Suspense>
          <ZoneField />
        </Suspense>
      </Dialog>
    </>
  );
}

interface ChoiceProps<Value extends string> {
  label: string;
  of: Preference<Value>;
  options: readonly (readonly [Value, string])[];
}

function Choice<Value extends string>({ label, of, options }: ChoiceProps<Value>) {
  return <Select label={label} value={usePreference(of)} options={options} onChange={of.set} />;
}
