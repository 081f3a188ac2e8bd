/**
 * Schemas are compiled when they are first used. There are several for each of some hundred routes, a process meets few of
 * them, and compiling all took half the processor time of a start. That each can be compiled is for a test to say.
 */
export function whenUsed<Input, Output>(compile: () => (input: Input) => Output): (input: Input) => Output {
  let compiled: ((input: Input) => Output) | undefined;
  return (input) => {
    compiled ??= compile();
    return compiled(input);
  };
}
