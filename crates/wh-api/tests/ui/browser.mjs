// The live page in headless Chromium, over its debugging pipe: run by `cargo xtask ui`.
// node browser.mjs BROWSER URL KEY SCREENSHOT; the server has an empty table `ticks (n UInt64, note String)`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [browser, url, key, screenshot] = process.argv.slice(2);
const WAIT = 60000;

const profile = await mkdtemp(join(tmpdir(), "wh-ui-"));
const child = spawn(
  browser,
  ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", `--user-data-dir=${profile}`,
    "--no-first-run", "--window-size=1200,800", "about:blank"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
const calls = new Map();
const faults = [];
let rest = "";
child.stdio[4].setEncoding("utf8").on("data", (text) => {
  const parts = (rest + text).split("\0");
  rest = parts.pop();
  parts.map((part) => JSON.parse(part)).forEach(heard);
});
const ended = new Promise((_, fail) => child.on("exit", (code) => fail(new Error(`the browser ended with ${code}`))));
ended.catch(() => {});

function heard({ id, result, error, method, params }) {
  if (id) {
    const { resolve, reject } = calls.get(id);
    calls.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  } else if (method === "Runtime.exceptionThrown") faults.push(params.exceptionDetails.text);
  else if (method === "Log.entryAdded" && params.entry.source === "security") faults.push(params.entry.text);
}

let last = 0;
function call(method, params = {}, sessionId = undefined) {
  last += 1;
  const id = last;
  const answer = new Promise((resolve, reject) => calls.set(id, { resolve, reject }));
  child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  return Promise.race([answer, ended]);
}

const { targetId } = await call("Target.createTarget", { url: "about:blank" });
const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
const page = (method, params) => call(method, params, sessionId);

/** What an expression gives in the page. */
async function look(expression) {
  const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, returnByValue: true });
  if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.text}`);
  return result.value;
}

async function until(expression, what) {
  const end = Date.now() + WAIT;
  for (;;) {
    if (await look(expression).catch(() => false)) return;
    if (Date.now() > end) throw new Error(`not in time: ${what}; ${await look("document.body.innerText")}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const fill = (id, text) => look(`void (document.getElementById("${id}").value = ${JSON.stringify(text)})`);
const click = (id) => look(`document.getElementById("${id}").click()`);
const number = (id) => `Number(document.getElementById("${id}").textContent.replaceAll(/[^0-9.]/g, "") || "NaN")`;

async function post(rows) {
  const response = await fetch(`${url}/v1/ingest?table=ticks`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson" },
    body: rows.map((row) => JSON.stringify(row)).join("\n"),
  });
  assert.equal(response.status, 200, await response.text());
}

try {
  for (const domain of ["Page", "Runtime", "Log"]) await page(`${domain}.enable`);
  await page("Page.navigate", { url: `${url}/ui/` });
  await until(`document.readyState === "complete" && document.title.includes("live")`, "the page");

  await fill("key", "wrong");
  await click("list");
  await until(`document.getElementById("message").textContent.includes("auth.operator_key_invalid")`, "a wrong key is refused");
  await fill("key", key);
  await click("list");
  await until(`document.querySelector('#tables option[value="ticks"]') !== null`, "the list of tables");

  await fill("table", "ticks");
  await click("follow");
  await until(`document.getElementById("state").className === "live"`, "the stream to be live");
  for (let n = 0; n < 8; n += 1) {
    await post(Array.from({ length: 5 }, (_, k) => ({ n: n * 5 + k, note: `row ${k} of request ${n}` })));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await post([{ n: 1000, note: "<img src=x onerror=alert(1)>" }]);
  await until(`${number("rows")} === 41`, "41 rows");
  await until(`${number("waiting")} === 0`, "all of them in ClickHouse");
  await until(`document.querySelectorAll("#body tr.row.committed").length === 41`, "all of them shown so");
  await until(`${number("rate")} > 0`, "a rate");
  assert.equal(await look(`document.querySelector("#body img") === null`), true, "text of a row is text");
  assert.equal(await look(`document.getElementById("body").rows[0].cells[2].textContent.includes("<img src=x")`), true);
  assert.equal(await look(`${number("gaps")} + ${number("reconnects")}`), 0);

  // the key is in the page's memory and nowhere else
  assert.equal(await look("location.href"), `${url}/ui/`);
  assert.equal(await look("localStorage.length + sessionStorage.length + document.cookie.length"), 0);
  const asked = await look(`performance.getEntriesByType("resource").map(({ name }) => name).join(" ")`);
  assert.equal(asked.includes(key), false, asked);
  assert.equal(asked.split(" ").every((name) => name.startsWith(`${url}/`)), true, asked);

  const { data } = await page("Page.captureScreenshot", { format: "png" });
  await writeFile(screenshot, Buffer.from(data, "base64"));

  await click("halt");
  await until(`document.getElementById("state").className === "idle"`, "the stream to be stopped");
  await page("Page.navigate", { url: "about:blank" });
  await page("Page.navigate", { url: `${url}/ui/#table=nothing` });
  await until(`document.getElementById("message").textContent.includes("table.not_found")`, "an unknown table is told");
  assert.deepEqual(faults, [], "nothing was thrown, and nothing was against the policy");
  console.log(`the live page works; it looked like ${screenshot}`);
} finally {
  child.removeAllListeners("exit");
  const gone = new Promise((resolve) => child.on("exit", resolve));
  child.kill("SIGKILL");
  await gone;
  await rm(profile, { recursive: true, force: true, maxRetries: 5 });
}
