/**
 * References in settings: `${env.NAME}` is replaced by an environment variable, so that `millrace.yaml` can be committed
 * without its secrets. A missing variable stops the start.
 */
import { OperatorError } from "../errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /\$\{(?:env\.([A-Za-z_]\w*)\})?/g;

/**
 * `place` is the subject of the error message. `encode` escapes a value that is a part of `text`, such as a password in a URL;
 * a reference that is the whole text is not escaped.
 */
export function withEnvironment(
  text: string,
  place: string,
  env: Environment,
  encode = (value: string) => value,
): string {
  return text.replace(REFERENCE, (reference: string, name: string | undefined) => {
    if (name === undefined) throw new OperatorError(`${place} has \`\${\` without \`env.NAME}\` after it.`);
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (!value) {
      throw new OperatorError(
        `${place} names the environment variable ${name}, which is not set. Set it and start again.`,
      );
    }
    return reference === text ? value : encode(value);
  });
}
