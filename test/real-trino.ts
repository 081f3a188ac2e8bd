/** The URL of a real Trino to test with, from `TEST_TRINO_URL`. `npm run test:servers` starts one. */
export const realTrino = process.env["TEST_TRINO_URL"];
