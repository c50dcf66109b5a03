// Server-sent events from a fetch, as the format's specification says. EventSource sends no headers, and a key does not
// belong into a URL.

/** Reads text piece by piece and calls `on` with each event: {event, id, data, fields}. */
export class Parser {
  #rest = "";
  #event = fresh();
  #feed;

  /** The last id there was: where to go on. */
  lastId = "";
  /** What the server asks to wait before coming back, in ms. */
  retry = null;
  /** Comments so far. */
  comments = 0;

  constructor(on) {
    this.#feed = on;
  }

  feed(text) {
    this.#rest += text;
    let from = 0;
    for (;;) {
      const end = lineEnd(this.#rest, from);
      if (end === null) break;
      this.#line(this.#rest.slice(from, end.at));
      from = end.next;
    }
    this.#rest = this.#rest.slice(from);
  }

  #line(line) {
    if (line === "") {
      const event = this.#event;
      this.#event = fresh();
      if (event.id !== null) this.lastId = event.id;
      if (event.lines.length === 0) return;
      this.#feed({ event: event.event || "message", id: event.id, data: event.lines.join("\n"), fields: event.fields });
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      this.comments += 1;
      return;
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.#event.event = value;
    else if (field === "data") this.#event.lines.push(value);
    else if (field === "id" && !value.includes("\0")) this.#event.id = value;
    else if (field === "retry" && /^[0-9]+$/.test(value)) this.retry = Number(value);
    else this.#event.fields[field] = value;
  }
}

function fresh() {
  return { event: "", id: null, lines: [], fields: Object.create(null) };
}

/** Where a line ends and the next begins; null while nobody knows. A line ends with LF, CR LF or CR. */
function lineEnd(text, from) {
  for (let at = from; at < text.length; at += 1) {
    const c = text.charCodeAt(at);
    if (c === 10) return { at, next: at + 1 };
    if (c === 13) {
      if (at + 1 === text.length) return null;
      return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
    }
  }
  return null;
}

/** A place of a block or row, as text, or null: {epoch, sequence, row}. */
export function place(text) {
  const found = /^([0-9a-f]{8})-([0-9]{1,20})(?:\.([0-9]{1,10}))?$/.exec(text ?? "");
  return found && { epoch: found[1], sequence: BigInt(found[2]), row: found[3] === undefined ? null : Number(found[3]) };
}

/** Whether a row's place is at or before the block up to which everything is committed. */
export function covered(row, committed) {
  return Boolean(row && committed) && row.epoch === committed.epoch && row.sequence <= committed.sequence;
}
