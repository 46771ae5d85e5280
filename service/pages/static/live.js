// Keeps the parts of a page that are marked data-live up to date: when an event comes, the page is
// asked for again and those parts are taken from it.
import { headers } from "./api.js";

const PAUSE_MS = 250;
const RETRY_MS = 500;
const SLOWEST_MS = 15000;
let waiting = 0;
let when = Infinity;
let next = 0;
let looking = false;
let again = false;

export function follow() {
  document.addEventListener("look-again", () => soon(0));
  const stream = document.querySelector("[data-events]");
  if (stream) listen(stream.dataset.events, stream.dataset.after);
  if (document.querySelector("[data-pending]")) soon(PAUSE_MS);
}

function soon(ms) {
  const wished = performance.now() + ms;
  if (wished >= when) return;
  clearTimeout(waiting);
  when = wished;
  waiting = setTimeout(() => { when = Infinity; look(); }, ms);
}

// The first event after a while shows at once. In a burst of them a page waits four times as long as
// the last one took, so that a service with many readers is never asked for more than it can give.
function happened() {
  if (looking) again = true;
  else soon(Math.max(0, next - performance.now()));
}

async function look() {
  if (looking) { again = true; return; }
  looking = true;
  const begun = performance.now();
  try {
    const answer = await fetch(location.href, { headers: headers() });
    if (answer.ok && !answer.redirected) {
      take(new DOMParser().parseFromString(await answer.text(), "text/html"));
    }
  } catch {
    // The next event, or the next look, tries again.
  }
  looking = false;
  const now = performance.now();
  next = now + Math.max(PAUSE_MS, Math.min(4 * (now - begun), SLOWEST_MS));
  if (again || document.querySelector("[data-pending]")) happened();
  again = false;
}

function take(fresh) {
  let changed = false;
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other || isSame(part, other)) continue;
    const focus = pathTo(part, document.activeElement);
    part.replaceChildren(...document.adoptNode(other).childNodes);
    for (const { name } of [...part.attributes]) {
      if (!other.hasAttribute(name)) part.removeAttribute(name);
    }
    for (const { name, value } of other.attributes) part.setAttribute(name, value);
    if (focus) at(part, focus)?.focus({ preventScroll: true });
    changed = true;
  }
  if (changed) document.dispatchEvent(new Event("figures"));
}

// A part that holds drawings changes only when its key does; drawings are no text to compare.
const seen = new WeakMap();

function isSame(part, other) {
  if ("key" in part.dataset) return part.dataset.key === other.dataset.key;
  const text = other.outerHTML;
  if (seen.get(part) === text) return true;
  seen.set(part, text);
  return false;
}

function pathTo(part, element) {
  if (!part.contains(element) || part === element) return null;
  const path = [];
  for (let here = element; here !== part; here = here.parentElement) {
    path.unshift([...here.parentElement.children].indexOf(here));
  }
  return path;
}

function at(part, path) {
  return path.reduce((here, index) => here?.children[index], part);
}

// Server-sent events, read by hand: EventSource would need to know every kind beforehand. A page
// that nobody sees holds no connection: a browser has few for one host.
async function listen(address, after) {
  let last = after || "";
  let pause = RETRY_MS;
  for (;;) {
    if (document.hidden) {
      await new Promise((done) => {
        document.addEventListener("visibilitychange", done, { once: true });
      });
      continue;
    }
    const seen = new AbortController();
    const leave = () => seen.abort();
    document.addEventListener("visibilitychange", leave, { once: true });
    try {
      const url = new URL(address, location.href);
      if (last) url.searchParams.set("after", last);
      const answer = await fetch(url, { headers: headers(), signal: seen.signal });
      if (answer.status === 401) return location.reload();
      if (answer.ok) {
        pause = RETRY_MS;
        for await (const line of lines(answer.body)) {
          if (line.startsWith("id:")) last = line.slice(3).trim();
          if (line.startsWith("data:")) happened();
        }
      }
    } catch {
      // The connection broke or was left: it is made anew below.
    }
    document.removeEventListener("visibilitychange", leave);
    if (!document.hidden) {
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(2 * pause, SLOWEST_MS);
    }
  }
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
}
