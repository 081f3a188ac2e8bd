/** A client of the HTTP API for tests: answers are values, whatever their status. */

export interface Answer<Body> {
  status: number;
  body: Body;
  headers: Headers;
}

export type Json = Record<string, unknown>;

export interface Api {
  get<Body = Json>(path: string): Promise<Answer<Body>>;
  /** Without a body it sends an empty one with the JSON content type, as many clients do. `signal` disconnects. */
  post<Body = Json>(path: string, body?: unknown, signal?: AbortSignal): Promise<Answer<Body>>;
  put<Body = Json>(path: string, body: unknown): Promise<Answer<Body>>;
  delete<Body = Json>(path: string): Promise<Answer<Body>>;
  /** Any other request. */
  send<Body = Json>(path: string, request: Sent): Promise<Answer<Body>>;
}

export interface Sent extends Omit<RequestInit, "headers"> {
  headers?: Record<string, string>;
}

export function api(url: string, key: string): Api {
  const send: Api["send"] = async <Body>(path: string, request: Sent) => {
    const headers = { authorization: `Bearer ${key}`, ...request.headers };
    const response = await fetch(url + path, { ...request, headers });
    const text = await response.text();
    return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Body, headers: response.headers };
  };

  const json = (method: string, body: unknown) => ({
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

  return {
    get: (path) => send(path, {}),
    post: (path, body, signal) => send(path, { ...json("POST", body), ...(signal ? { signal } : {}) }),
    put: (path, body) => send(path, json("PUT", body)),
    delete: (path) => send(path, { method: "DELETE" }),
    send,
  };
}
