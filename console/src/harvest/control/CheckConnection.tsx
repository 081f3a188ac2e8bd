/** Whether a source can be reached and read: what was found, line by line, and what to do about it. */
import { useRef, useState } from "react";
import { ApiError, act } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Select } from "../../parts/controls/Select.tsx";
import { Dialog } from "../../parts/dialogs/Dialog.tsx";
import { Failure } from "../../parts/page/Page.tsx";
import { StateMark } from "../../parts/states/StateMark.tsx";
import type { State } from "../../parts/states/state.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { type ConnectionCheck, paths, type Source } from "../api.ts";
import styles from "../harvest.module.css";
import { controlWords } from "./words.ts";

const VERDICT_STATES = { ok: "success", warn: "waiting", fail: "failed" } as const satisfies Record<
  ConnectionCheck["verdict"],
  State
>;

export function CheckConnection({ source }: { source: string }) {
  const text = useWords(controlWords);
  const lacked = useWhyNot("harvest:control");
  const [isOpen, setOpen] = useState(false);
  const state = useCheck(source);
  const open = () => {
    setOpen(true);
    state.check(undefined);
  };
  return (
    <>
      <Button why={lacked} onPress={open}>
        {text.checkConnection}
      </Button>
      {isOpen && <CheckDialog source={source} state={state} onClose={() => setOpen(false)} />}
    </>
  );
}

interface CheckDialogProps {
  source: string;
  state: ReturnType<typeof useCheck>;
  onClose(): void;
}

function CheckDialog({ source, state: { checked, error, isPending, check }, onClose }: CheckDialogProps) {
  const text = useWords(controlWords);
  const shared = useWords(common);
  const { data } = useLive<Source>(paths.definition(source));
  const [endpoint, setEndpoint] = useState<string>();
  const choose = (name: string) => {
    setEndpoint(name);
    check(name);
  };
  const endpoints = Object.keys(data?.definition.endpoints ?? {});
  return (
    <Dialog
      title={text.checkTitle(source)}
      isOpen
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>{shared.close}</Button>
          <Button icon="retry" isPending={isPending} onPress={() => check(endpoint)}>
            {text.checkAgain}
          </Button>
        </>
      }
    >
      <p className={styles.soft}>{text.checkExplained}</p>
      {endpoints.length > 1 && (endpoint ?? checked?.endpoint) !== undefined && (
        <Select
          label={text.endpoint}
          value={endpoint ?? checked?.endpoint ?? ""}
          options={endpoints.map((name) => [name, name] as const)}
          onChange={choose}
        />
      )}
      <div aria-live="polite">
        {isPending && <p>{text.checking}</p>}
        {error && <Failure error={error} />}
        {checked && !isPending && <CheckLines checked={checked} />}
      </div>
    </Dialog>
  );
}

function CheckLines({ checked }: { checked: ConnectionCheck }) {
  const text = useWords(controlWords);
  return (
    <dl className={styles.check}>
      {checked.lines.map(({ name, verdict, found, advice }) => (
        <div key={name}>
          <dt>
            <StateMark state={VERDICT_STATES[verdict]} label={text[verdict]} /> {text[name]}
          </dt>
          <dd>{found}</dd>
          {advice !== null && <dd className={styles.advice}>{advice}</dd>}
        </div>
      ))}
    </dl>
  );
}

interface Check {
  checked: ConnectionCheck | undefined;
  error: ApiError | undefined;
  isPending: boolean;
}

function useCheck(source: string): Check & { check(endpoint: string | undefined): void } {
  const [state, setState] = useState<Check>({ checked: undefined, error: undefined, isPending: false });
  // The answer to an earlier question is not shown.
  const asked = useRef(0);
  async function check(endpoint: string | undefined): Promise<void> {
    asked.current += 1;
    const number = asked.current;
    const end = (change: Partial<Check>) => {
      if (number === asked.current) setState((last) => ({ ...last, ...change, isPending: false }));
    };
    setState((last) => ({ ...last, error: undefined, isPending: true }));
    try {
      end({
        checked: await act<ConnectionCheck>(paths.check(source), "POST", endpoint === undefined ? {} : { endpoint }),
      });
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      end({ checked: undefined, error: thrown });
    }
  }
  return { ...state, check: (endpoint) => void check(endpoint) };
}
