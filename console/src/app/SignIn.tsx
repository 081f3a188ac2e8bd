/** Signing in by key, or by the link that the server has printed. */
import { useState } from "react";
import { useSubmit } from "../parts/actions/use-submit.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Failure } from "../parts/page/Page.tsx";
import { Sentence } from "../parts/page/Sentence.tsx";
import { useWords } from "../words/words.ts";
import styles from "./SignIn.module.css";
import { signIn } from "./session.ts";
import { shell } from "./words.ts";

export function SignInForm() {
  const text = useWords(shell);
  const [key, setKey] = useState("");
  const { error, isPending, onSubmit } = useSubmit(() => signIn({ key: key.trim() }));
  return (
    <form className={styles.form} onSubmit={onSubmit}>
      <label htmlFor="key">{text.key}</label>
      <input
        id="key"
        type="password"
        autoComplete="current-password"
        value={key}
        required
        autoFocus
        onChange={(event) => setKey(event.target.value)}
      />
      {error && <Failure error={error} />}
      <Button type="submit" kind="primary" isPending={isPending}>
        {text.signIn}
      </Button>
    </form>
  );
}

export function SignInPage({ problem }: { problem?: string | undefined }) {
  const text = useWords(shell);
  return (
    <main className={styles.page}>
      <h1>{text.signInTitle}</h1>
      {problem !== undefined && <p role="alert">{problem}</p>}
      <p>{text.signInHelp}</p>
      <SignInForm />
      <p className={styles.soft}>
        <Sentence text={text.newLink} />
      </p>
    </main>
  );
}
