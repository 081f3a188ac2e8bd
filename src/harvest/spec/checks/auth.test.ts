/** Definitions whose authentication is missing, incomplete or not supported. */
import { key, list, testBad } from "../bad-definition.fixture.ts";

testBad([
  {
    check: "authIsAsRequired",
    change: list({ requiresAuth: true }),
    table: "reg_prov_http_cfg",
    field: "auth.type",
    reason: "The endpoint requires authentication, and `auth.type` is NONE.",
  },
  {
    check: "authIsAsRequired",
    change: list({ ...key, requiresAuth: true, "auth.required": false }),
    table: "reg_prov_http_cfg",
    field: "auth.required",
    reason: /may not be anonymous/,
  },
  {
    check: "authIsComplete",
    change: list({ ...key, "auth.credential": "kex" }),
    table: "reg_prov_http_cfg",
    field: "auth.credential",
    reason: "The source has no credential `kex`. Did you mean `key`?",
  },
  {
    check: "authIsComplete",
    change: list({ ...key, "auth.credential": undefined }),
    table: "reg_prov_http_cfg",
    field: "auth.credential",
    reason: "API_KEY needs the name of a credential of the source.",
  },
  {
    check: "authIsComplete",
    change: list({ ...key, "auth.name": undefined }),
    table: "reg_prov_http_cfg",
    field: "auth.name",
    reason: /needs the name of its header, parameter or form field/,
  },
  {
    check: "authIsComplete",
    change: list({ ...key, "auth.location": undefined }),
    table: "reg_prov_http_cfg",
    field: "auth.location",
    reason: "API_KEY needs HEADER, QUERY or BODY.",
  },
  {
    check: "authIsSupported",
    change: list({ "auth.type": "CUSTOM", "auth.signingHook": "hmac" }),
    table: "reg_prov_http_cfg",
    field: "auth.type",
    reason: "CUSTOM is not supported yet. Use API_KEY or BEARER.",
  },
  {
    check: "authIsSupported",
    change: list({ "auth.type": "OAUTH2" }),
    table: "reg_prov_http_cfg",
    field: "auth.type",
    reason: "OAUTH2 is not supported yet. Use API_KEY or BEARER.",
  },
  {
    check: "authIsSupported",
    change: list({ ...key, "auth.signingHook": "hmac" }),
    table: "reg_prov_http_cfg",
    field: "auth.signingHook",
    reason: "Only CUSTOM has a signing hook.",
  },
  {
    check: "redactionIsOn",
    change: list({ redact: false }),
    table: "reg_prov_expr_render_rule",
    field: "redact",
    reason: /always redacted; it cannot be turned off/,
  },
  {
    check: "authFitsRequest",
    change: list({ ...key, "auth.location": "BODY" }),
    table: "reg_prov_http_cfg",
    field: "auth.location",
    reason: "A GET request has no body to send a credential in.",
  },
  {
    check: "authFitsRequest",
    change: list({ ...key, "auth.name": "limit" }),
    table: "reg_prov_http_cfg",
    field: "auth.name",
    reason: "`limit` is sent by the credential and by a template or parameter.",
  },
]);
