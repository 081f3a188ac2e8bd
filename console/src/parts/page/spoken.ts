/** Paces what a screen reader announces: text that changes faster than it is read aloud would interrupt itself for ever. */
const GAP_MS = 5_000;

export interface Speech {
  set(text: string): void;
  stop(): void;
}

/** `say` gets the first text at once, and then the newest one at most every five seconds. */
export function createSpeech(say: (text: string) => void, now: () => number): Speech {
  let spoken = "";
  let spokenAt = -GAP_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    set(text) {
      clearTimeout(timer);
      if (text === spoken) return;
      const waitMs = text === "" ? 0 : Math.max(0, spokenAt + GAP_MS - now());
      timer = setTimeout(() => {
        spoken = text;
        if (text !== "") spokenAt = now();
        say(text);
      }, waitMs);
    },
    stop: () => clearTimeout(timer),
  };
}
