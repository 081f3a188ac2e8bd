/** Announces a text to screen readers whenever it changes, at most every five seconds. Sighted users read it elsewhere. */
import { useEffect, useRef, useState } from "react";
import { createSpeech, type Speech } from "./spoken.ts";

export function LiveRegion({ children }: { children: string }) {
  const [spoken, setSpoken] = useState("");
  const speech = useRef<Speech>(undefined);
  useEffect(() => {
    const own = createSpeech(setSpoken, () => performance.now());
    speech.current = own;
    return own.stop;
  }, []);
  useEffect(() => speech.current?.set(children), [children]);
  return (
    <span role="status" className="visually-hidden">
      {spoken}
    </span>
  );
}
