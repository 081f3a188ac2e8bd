/** A certificate for test servers on loopback. */

function pem(label: string, base64: string): string {
  return `-----BEGIN ${label}-----\n${base64}\n-----END ${label}-----\n`;
}

/** For localhost and 127.0.0.1, signed by nobody. */
export const SELF_SIGNED = {
  cert: pem(
    "CERTIFICATE",
    "MIIBmzCCAUGgAwIBAgIUYpYXH4A8r6oEX4Vd/mjFt/cAnGQwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNjE2MzUxNloYDzIx" +
      "MjYxMDIzMTYzNTE2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQuR2b5Ibug1mqAGy4gyN09GN6eor+WEVxKPOhT" +
      "iE9Xce2dwK8/6ROPsNeEF39k71K12HoM9B+TD19gG+8aBr85o28wbTAdBgNVHQ4EFgQUNkrIbhdyDZAZjh4pc5onj4dy19QwHwYDVR0jBBgwFoAUNkrIbhdy" +
      "DZAZjh4pc5onj4dy19QwDwYDVR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZIzj0EAwIDSAAwRQIgQOYGuOK5fjI/KFjw" +
      "iLJ0VpMdzg3Ye22E0akVTm9MCq4CIQDcsZpbCaZo5/JzhN3zbskiKcEuUSRFN13eiQ5Theg3XA==",
  ),
  key: pem(
    "PRIVATE KEY",
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgz3Eik2n8R5PH3lgUktUwV52Dti6exL7ceOJMYXILeu6hRANCAAQuR2b5Ibug1mqAGy4gyN09" +
      "GN6eor+WEVxKPOhTiE9Xce2dwK8/6ROPsNeEF39k71K12HoM9B+TD19gG+8aBr85",
  ),
};
