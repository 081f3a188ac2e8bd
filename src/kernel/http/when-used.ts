/**
 * Schemas are compiled when they are first used. There are several for each of some hundred routes, a process uses few of
 * them, and compiling all took half of the CPU time of a start. A test checks that each can be compiled.
 */
export function whenUsed<Input, Output>(compile: () => (input: Input) => Output): (input: Input) => Output {
  let compiled: ((input: Input) => Output) | undefined;
  return (input) => {
    compiled ??= compile();
    return compiled(input);
  };
}
