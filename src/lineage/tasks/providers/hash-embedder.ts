/**
 * The built-in embedder `hash-v1`: features of a text are hashed into the dimensions of a vector. It needs no model file and
 * no network, and gives the same vector on every machine. It finds what shares words, parts of words and identifiers; it
 * knows no synonyms. What it computes never changes: another recipe would be another model, with another name.
 */

/** What a feature counts for. Parts of words are many, and must not drown the words. */
const WORD = 1;
const PAIR = 0.6;
const PART = 0.25;
/** Chinese has no spaces: a character alone says little, two say about as much as a word. */
const CHARACTER = 0.5;
const TWO_CHARACTERS = 1;

const PART_LENGTH_MIN = 3;
const PART_LENGTH_MAX = 5;
/** Longer runs of letters are data and no words: their parts would be noise. */
const WORD_LENGTH_MAX = 40;

/** Letters that are no ideographs, ideographs, digits: each run by itself, as identifiers are read. */
const RUNS = /\p{Script=Han}+|(?:(?!\p{Script=Han})\p{L})+|\d+/gu;
const HAN = /^\p{Script=Han}/u;
/** `orderLine` is order, line; `HTTPServer` is HTTP, Server. */
const CAMEL = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;

/** A vector of length 1; all zeros for a text without letters and digits. */
export function hashEmbedding(text: string, dimension: number): number[] {
  const features = new Map<string, { count: number; weight: number }>();
  const add = (feature: string, weight: number) => {
    const known = features.get(feature);
    if (known) known.count += 1;
    else features.set(feature, { count: 1, weight });
  };

  let before: string | undefined;
  for (const word of wordsOf(text)) {
    if (HAN.test(word)) {
      addCharacters(word, add);
      before = undefined;
      continue;
    }
    add(`w ${word}`, WORD);
    if (before !== undefined) add(`p ${before} ${word}`, PAIR);
    if (word.length <= WORD_LENGTH_MAX) addParts(`<${word}>`, add);
    before = word;
  }

  const vector = Array.from({ length: dimension }, () => 0);
  for (const [feature, { count, weight }] of features) {
    const hash = hashOf(feature);
    const index = hash % dimension;
    // The sign comes from a bit that plays no part in the index, so that features which meet cancel out on average.
    const sign = mixed(hash) & 1 ? 1 : -1;
    vector[index] = (vector[index] ?? 0) + sign * weight * (1 + Math.log(count));
  }
  return normalized(vector);
}

/** Of length 1, so that the product of two is the cosine of the angle between them. */
export function normalized(vector: readonly number[]): number[] {
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  return length === 0 ? [...vector] : vector.map((x) => x / length);
}

function wordsOf(text: string): string[] {
  const runs = text.normalize("NFKC").match(RUNS) ?? [];
  return runs.flatMap((run) => run.split(CAMEL)).map((word) => word.toLowerCase());
}

type Add = (feature: string, weight: number) => void;

function addCharacters(run: string, add: Add): void {
  const characters = Array.from(run);
  for (const [index, character] of characters.entries()) {
    add(`c ${character}`, CHARACTER);
    const next = characters[index + 1];
    if (next !== undefined) add(`c ${character}${next}`, TWO_CHARACTERS);
  }
}

function addParts(word: string, add: Add): void {
  for (let length = PART_LENGTH_MIN; length <= PART_LENGTH_MAX; length += 1) {
    for (let start = 0; start + length <= word.length; start += 1) add(`g ${word.slice(start, start + length)}`, PART);
  }
}

/** FNV-1a over UTF-16 units, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mixed(hash);
}

/** The last step of MurmurHash3: FNV alone leaves the low bits of similar texts alike. */
function mixed(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
