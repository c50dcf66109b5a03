// Follows one table over reconnects, and says what comes. Knows nothing of the page.

import { Parser } from "./sse.js";

/** Reasons of an `end` after which coming back is of no use. */
const FINAL = ["table_gone", "view_gone"];
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;

/**
 * Reads /v1/stream until `signal` is given. `say` is called with (kind, what): "state" with {name, text}, "refused" with
 * {status, code, error}, and each event of the stream under its own name.
 */
export async function follow({ table, tenant, key, since, signal }, say) {
  let lastId = "";
  let failures = 0;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    say("state", { name: "waiting", text: attempt === 0 ? "connecting" : "connecting again" });
    if (attempt > 0) say("reconnect", {});
    let wait = Math.min(FIRST_WAIT * 2 ** failures, LONGEST_WAIT);
    try {
      const response = await open({ table, tenant, key, since, lastId, signal });
      if (!response.ok) {
        const refusal = await reason(response);
        say("refused", refusal);
        if (!refusal.retryable) return;
        wait = Math.max(wait, refusal.retryAfter * 1000);
        failures += 1;
      } else {
        const end = await read(response, say, (id) => (lastId = id));
        failures = 0;
        if (end.final) return;
        wait = end.retry ?? FIRST_WAIT;
      }
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
    }
    say("state", { name: "waiting", text: "connection lost" });
    await pause(wait * (0.5 + Math.random() / 2), signal);
  }
}

function open({ table, tenant, key, since, lastId, signal }) {
  const query = new URLSearchParams({ table, events: "committed" });
  if (since && !lastId) query.set("since", since);
  const headers = { accept: "text/event-stream" };
  if (tenant) headers["x-tenant-id"] = tenant;
  if (key) headers["x-operator-key"] = key;
  if (lastId) headers["last-event-id"] = lastId;
  return fetch(`/v1/stream?${query}`, { headers, signal, cache: "no-store", credentials: "omit" });
}

async function read(response, say, seen) {
  const end = { final: false, retry: null };
  const parser = new Parser((event) => {
    if (event.event === "ready") say("state", { name: "live", text: "live" });
    if (event.event === "end") {
      const data = json(event.data);
      if (data.resume) seen(data.resume);
      end.final = FINAL.includes(data.reason);
      say("state", { name: "ended", text: `ended: ${data.reason}` });
    }
    say(event.event, event);
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parser.feed(value);
    if (parser.lastId) seen(parser.lastId);
  }
  end.retry = parser.retry;
  return end;
}

/** What a refusal says of itself. */
export async function reason(response) {
  const body = json(await response.text());
  return {
    status: response.status,
    code: body.code ?? "",
    error: body.error ?? response.statusText,
    retryable: body.retryable === true,
    retryAfter: Number(response.headers.get("retry-after")) || 1,
  };
}

/** JSON, or nothing. */
export function json(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
