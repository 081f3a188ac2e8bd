/** A client of the HTTP API for tests: answers are values, whatever their status. */

export interface Answer<Body> {
  status: number;
  body: Body;
  headers: Headers;
}

export type Json = Record<string, unknown>;

export interface Api {
  get<Body = Json>(path: string): Promise<Answer<Body>>;
  /** `signal` hangs up. */
  post<Body = Json>(path: string, body: unknown, signal?: AbortSignal): Promise<Answer<Body>>;
  delete<Body = Json>(path: string): Promise<Answer<Body>>;
}

export function api(url: string, key: string): Api {
  const authorization = `Bearer ${key}`;

  async function call<Body>(path: string, init: RequestInit): Promise<Answer<Body>> {
    const response = await fetch(url + path, init);
    const text = await response.text();
    return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Body, headers: response.headers };
  }

  return {
    get: (path) => call(path, { headers: { authorization } }),
    post: (path, body, signal) =>
      call(path, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify(body),
        ...(signal ? { signal } : {}),
      }),
    delete: (path) => call(path, { method: "DELETE", headers: { authorization } }),
  };
}
