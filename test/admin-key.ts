/** The admin key of every Millrace that tests start. A file of its own, for helpers that need neither a database nor a server. */
export const ADMIN_KEY = "a-key-that-only-the-tests-know-of";
