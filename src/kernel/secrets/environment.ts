/**
 * Secrets by reference: in a setting, `${env.NAME}` stands for a variable of the environment. So `millrace.yaml` can lie in a
 * repository, and a variable that is missing stops the start.
 */
import { OperatorError } from "../errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /\$\{(?:env\.([A-Za-z_]\w*)\})?/g;

/**
 * `place` begins the sentence that says what is wrong. Inside of an address, `encode` writes a value as addresses want it; one
 * that is the whole is taken as it is.
 */
export function withEnvironment(
  text: string,
  place: string,
  env: Environment,
  encode = (value: string) => value,
): string {
  return text.replace(REFERENCE, (reference: string, name: string | undefined) => {
    if (name === undefined) throw new OperatorError(`${place} has \`\${\` without \`env.NAME}\` behind it.`);
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (!value) {
      throw new OperatorError(
        `${place} names the environment variable ${name}, which is not set. Set it and start again.`,
      );
    }
    return reference === text ? value : encode(value);
  });
}
