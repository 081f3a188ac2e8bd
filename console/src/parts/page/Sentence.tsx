/** A text with what is between backticks as code, such as the name of a command. */
import { Fragment } from "react";

export function Sentence({ text }: { text: string }) {
  return text.split(/`([^`]+)`/).map((part, index) => {
    const key = `${index} ${part}`;
    return index % 2 === 1 ? <code key={key}>{part}</code> : <Fragment key={key}>{part}</Fragment>;
  });
}
