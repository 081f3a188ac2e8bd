/** By this header, which every answer has, a client knows that Millrace answers and no other server with JSON of its own. */
export const VERSION_HEADER = "millrace-version";
