// The page: what is chosen, what came, and how fast.

import { follow, json, reason } from "./follow.js";
import { covered, place } from "./sse.js";

const KEPT = 200;
const SECONDS = 60;
/** Blocks that are remembered as not yet in ClickHouse. */
const MOST_BLOCKS = 10000;

const $ = (id) => document.getElementById(id);
let halt = null;
let seen = fresh();

function fresh() {
  return {
    rows: 0, replayed: 0, gaps: 0, reconnects: 0, committed: null, waiting: new Map(), waitingRows: 0,
    seconds: new Array(SECONDS).fill(0), second: now(), fresh: [], changed: true,
  };
}

function now() {
  return Math.floor(performance.now() / 1000);
}

function tick() {
  const passed = Math.min(now() - seen.second, SECONDS);
  for (let n = 0; n < passed; n += 1) {
    seen.seconds.shift();
    seen.seconds.push(0);
  }
  if (passed > 0) seen.second = now();
}

function row(event) {
  const at = place(event.id);
  const replay = isReplay(event);
  seen.rows += 1;
  if (replay) seen.replayed += 1;
  else {
    tick();
    seen.seconds[SECONDS - 1] += 1;
  }
  if (at && !covered(at, seen.committed) && seen.waiting.size < MOST_BLOCKS) {
    const block = `${at.epoch}-${at.sequence}`;
    seen.waiting.set(block, (seen.waiting.get(block) ?? 0) + 1);
    seen.waitingRows += 1;
  }
  keep({ at, id: event.id, text: event.data, replay, when: new Date() });
}

function isReplay(event) {
  return event.fields.replay === "true";
}

function keep(entry) {
  seen.fresh.push(entry);
  if (seen.fresh.length > KEPT) seen.fresh.shift();
  seen.changed = true;
}

function mark(text) {
  keep({ mark: text, when: new Date() });
}

function committed(event) {
  seen.committed = place(json(event.data).committed);
  for (const [block, rows] of seen.waiting) {
    if (!covered(place(block), seen.committed)) continue;
    seen.waiting.delete(block);
    seen.waitingRows -= rows;
  }
  seen.changed = true;
}

function gap(event) {
  const { from, to } = json(event.data);
  seen.gaps += 1;
  mark(`gap: rows may be missing after ${from ?? "an unknown place"} and before ${to ?? "the next row"}`);
}

function end(event) {
  const { reason: why, resume } = json(event.data);
  mark(`the server ended the stream: ${why}${resume ? `, goes on after ${resume}` : ""}`);
}

const ON = {
  row,
  committed,
  gap,
  end,
  reconnect: () => { seen.reconnects += 1; },
  state: ({ name, text }) => state(name, text),
  refused: (refusal) => tell(refusal),
};

function state(name, text) {
  $("state").className = name;
  $("state").textContent = text;
}

function tell(refusal) {
  const needsKey = refusal.status === 401 || refusal.status === 403;
  message(`${refusal.error} (${refusal.status} ${refusal.code})`);
  state("ended", "refused");
  if (needsKey) $("key").focus();
}

function message(text) {
  $("message").textContent = text;
  $("message").hidden = text === "";
}

async function start() {
  stop();
  seen = fresh();
  $("body").replaceChildren();
  $("empty").hidden = true;
  message("");
  const own = (halt = new AbortController());
  $("halt").disabled = false;
  const say = (kind, what) => { if (own === halt) ON[kind]?.(what); };
  const [table, tenant, key, since] = ["table", "tenant", "key", "since"].map((id) => $(id).value.trim());
  await follow({ table, tenant, key, since, signal: own.signal }, say);
  if (own === halt) $("halt").disabled = true;
}

function stop() {
  halt?.abort();
  halt = null;
  $("halt").disabled = true;
  state("idle", "not connected");
}

async function list() {
  message("");
  const [tenant, key] = ["tenant", "key"].map((id) => $(id).value.trim());
  const query = new URLSearchParams(tenant ? { tenant } : {});
  const headers = key ? { "x-operator-key": key } : {};
  try {
    const response = await fetch(`/v1/ops/schema?${query}`, { headers, cache: "no-store", credentials: "omit" });
    if (!response.ok) return tell(await reason(response));
    const tables = await response.json();
    $("tables").replaceChildren(...tables.map(({ name }) => new Option(name, name)));
    message(tables.length ? "" : "there are no tables");
    $("table").focus();
    if (tables.length && !$("table").value) $("table").value = tables[0].name;
  } catch {
    message("the server cannot be reached");
  }
}

function line(entry) {
  const tr = document.createElement("tr");
  const cell = (text) => {
    const td = document.createElement("td");
    td.textContent = text;
    tr.append(td);
  };
  cell(entry.mark ? "" : (entry.id ?? ""));
  cell(entry.when.toLocaleTimeString());
  cell(entry.mark ?? entry.text);
  if (entry.mark) tr.className = "mark";
  else {
    tr.classList.add("row");
    tr.classList.toggle("replay", entry.replay);
    tr.dataset.place = entry.id ?? "";
  }
  return tr;
}

function draw() {
  tick();
  const body = $("body");
  if (seen.changed) {
    seen.changed = false;
    body.prepend(...seen.fresh.splice(0).reverse().map(line));
    while (body.rows.length > KEPT) body.deleteRow(-1);
    for (const tr of body.querySelectorAll("tr.row:not(.committed)")) {
      if (covered(place(tr.dataset.place), seen.committed)) tr.classList.add("committed");
    }
  }
  const rate = seen.seconds.slice(-11, -1).reduce((sum, n) => sum + n, 0) / 10;
  $("rate").textContent = rate.toLocaleString(undefined, { maximumFractionDigits: 1 });
  $("rows").textContent = seen.rows.toLocaleString();
  $("replayed").textContent = seen.replayed.toLocaleString();
  $("waiting").textContent = seen.committed ? seen.waitingRows.toLocaleString() : "–";
  $("gaps").textContent = seen.gaps.toLocaleString();
  $("reconnects").textContent = seen.reconnects.toLocaleString();
  chart();
  setTimeout(() => requestAnimationFrame(draw), 100);
}

function chart() {
  const canvas = $("chart");
  const to = canvas.getContext("2d");
  const most = Math.max(1, ...seen.seconds);
  const width = canvas.width / SECONDS;
  to.clearRect(0, 0, canvas.width, canvas.height);
  to.fillStyle = getComputedStyle(canvas).color;
  seen.seconds.forEach((count, n) => {
    const height = (count / most) * (canvas.height - 2);
    to.fillRect(n * width, canvas.height - height, width - 1, height);
  });
}

$("choice").addEventListener("submit", (event) => { event.preventDefault(); start(); });
$("halt").addEventListener("click", stop);
$("list").addEventListener("click", list);
// a bookmark may name a table, and nothing else
const named = new URLSearchParams(location.hash.slice(1)).get("table");
if (named) {
  $("table").value = named;
  start();
}
draw();
