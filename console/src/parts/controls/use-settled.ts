/** A value that a person types, once they pause: one request for a word instead of one for each key. */
import { useEffect, useState } from "react";

const PAUSE_MS = 250;

/** The value must keep its identity between renders: a text, or an object that is remembered. */
export function useSettled<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
