// @ts-check
// A run that is running. Events of its stream are signals alone: what they changed is fetched as HTML, at most four
// times a second, and everything that was missed comes with it.

import {fetchFragment} from "./fragment.js";
import {place} from "./place.js";

const APART_MS = 300, PARTS_MS = 1000, HIDDEN_MS = 60_000, SAY_MS = 10_000, FIRST_WAIT_MS = 500, LONGEST_WAIT_MS = 10_000, QUIET_MS = 5000;

const line = /** @type {HTMLElement} */ (document.getElementById("live"));
const list = /** @type {HTMLElement} */ (document.querySelector("[data-items]"));
const run = line.dataset.live ?? "";
const here = `/runs/${encodeURIComponent(run)}`;
const part = (/** @type {string} */ name) => /** @type {HTMLElement} */ (line.querySelector(`[data-${name}]`));

let shown = Number(line.dataset.shown), last = Number(line.dataset.head), changing = Number(line.dataset.changing);
let isCut = "cut" in line.dataset;
let received = Date.now(), said = 0, fetched = 0, tries = 0, timer = 0, pause = 0, hiding = 0;
/** When the next try is; 0 while connected. */
let again = 0;
let busy = false, ended = false, news = 0, drawn = 0;
let following = !place();
/** @type {EventSource | null} */
let source = null;
/** @type {(() => void) | null} */
let release = null;
/** @type {Record<string, string>} */
const seen = {};
const channel = new BroadcastChannel(`seatrial ${run}`);

// What comes

/** @param {number} following the sequence behind the last event that is known */
function hear(following) {
  if (following > last) received = Date.now();
  last = Math.max(last, following);
  plan();
}

function plan() {
  if (busy || pause || again || document.hidden || (!ended && (isCut || shown >= last))) return;
  pause = window.setTimeout(refresh, Math.max(0, fetched + APART_MS - Date.now()));
}

async function refresh() {
  pause = 0;
  if (busy) return;
  busy = true;
  fetched = Date.now();
  try {
    const state = new URL(location.href).searchParams;
    const query = new URLSearchParams({items: String(changing), px: String(Math.round(document.querySelector("svg.tl")?.getBoundingClientRect().width || 1180))});
    for (const name of ["from", "to", "axis", "lanes", "show", "open", "at"]) {
      const value = state.get(name);
      if (value !== null) query.set(name, value);
    }
    await apply(await fetchFragment(`${here}/live?${query}`));
    if (again) connected();
  } catch (error) {
    lost(/** @type {Error} */ (error));
  }
  busy = false;
  plan();
}

/** @param {DocumentFragment} fresh */
async function apply(fresh) {
  const state = /** @type {HTMLElement | null} */ (fresh.querySelector("[data-live-state]"));
  // The record has come: this is the page of a run like any other.
  if (!state) return location.reload();
  shown = Number(state.dataset.shown);
  // After a pause, the server knows better: another log may have taken the place of the one that was followed.
  last = again ? Number(state.dataset.head) : Math.max(last, Number(state.dataset.head));
  changing = Number(state.dataset.changing);
  isCut = "cut" in state.dataset;
  /** @type {HTMLElement} */ (document.querySelector("[data-cut-ban]")).hidden = !isCut;
  items(/** @type {HTMLElement} */ (fresh.querySelector("[data-range]")), Number(state.dataset.total));
  end();
  // What is said goes first. The rest, a piece at a time, so that nothing that the reader does has to wait for it.
  if (Date.now() - drawn < PARTS_MS && shown < last) return;
  drawn = Date.now();
  for (const each of fresh.querySelectorAll("[data-part]")) {
    await new Promise((done) => setTimeout(done, 0));
    const name = each.getAttribute("data-part") ?? "", html = each.innerHTML;
    const old = document.querySelector(`main [data-part="${name}"]`);
    if (!old || seen[name] === html) continue;
    seen[name] = html;
    const focus = old.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    old.replaceChildren(...each.childNodes);
    old.querySelectorAll("details").forEach((one, index) => (one.open = open[index] ?? one.open));
    if (focus) /** @type {HTMLElement | null} */ (old.querySelector(`[href="${CSS.escape(focus)}"]`))?.focus({preventScroll: true});
  }
  document.dispatchEvent(new CustomEvent("seatrial:place", {detail: place()}));
  end();
}

/**
 * @param {HTMLElement} range the items from the first that may have changed
 * @param {number} total
 */
function items(range, total) {
  const fresh = /** @type {HTMLElement} */ (range.querySelector("ol.ts"));
  const chunks = /** @type {HTMLElement[]} */ ([...list.querySelectorAll(":scope > ol.ts")]);
  const tail = chunks[chunks.length - 1];
  const before = Number(list.dataset.total);
  list.dataset.total = String(total);
  news += following ? 0 : Math.max(0, total - before);
  if (!tail || Number(fresh.dataset.first) > Number(tail.dataset.end) || (following && list.querySelector(":scope > [data-after]"))) {
    // More has come than one fetch brings: what is between can be fetched as in any transcript.
    if (!following && tail) return;
    list.replaceChildren(...range.childNodes);
    list.dispatchEvent(new CustomEvent("seatrial:jump"));
    return;
  }
  const atEnd = !list.querySelector(":scope > [data-after]");
  for (const item of /** @type {HTMLElement[]} */ ([...fresh.children])) {
    const old = document.getElementById(item.id);
    if (!old) {
      if (atEnd) tail.append(item);
      continue;
    }
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    const selection = getSelection();
    if (selection && !selection.isCollapsed && old.contains(selection.anchorNode)) continue;
    if (seen[item.id] === item.innerHTML) continue;
    seen[item.id] = item.innerHTML;
    const isFocused = old === document.activeElement;
    old.replaceWith(item);
    item.querySelectorAll("details").forEach((one, index) => (one.open = open[index] ?? one.open));
    if (isFocused) item.focus({preventScroll: true});
  }
  if (atEnd) tail.dataset.end = fresh.dataset.end;
}

// Following

const button = /** @type {HTMLElement} */ (part("follow"));
let scrolled = scrollY;

function end() {
  button.setAttribute("aria-pressed", String(following));
  const words = following ? "Following " : news ? `${news} new ${news === 1 ? "item" : "items"} ▾ ` : "Follow ";
  if (button.firstChild && button.firstChild.textContent !== words) button.firstChild.textContent = words;
  const bottom = list.lastElementChild?.getBoundingClientRect().bottom ?? 0;
  if (following && bottom > innerHeight - 24) scrollBy({top: bottom - innerHeight + 24, behavior: "instant"});
  scrolled = scrollY;
}

button.addEventListener("click", () => {
  following = !following;
  news = 0;
  if (following && list.querySelector(":scope > [data-after]")) refresh();
  end();
});
addEventListener("scroll", () => {
  if (following && scrollY < scrolled - 40) {
    following = false;
    end();
  }
  scrolled = Math.max(scrollY, following ? scrolled : 0);
}, {passive: true});

// The stream

function open() {
  if (source || document.hidden && !release) return;
  source = new EventSource(`/v1/runs/${encodeURIComponent(run)}/stream${last ? `?after=${last - 1}` : ""}`);
  source.onopen = () => ((tries = 0), say());
  source.onmessage = (event) => {
    const sequence = Number(event.lastEventId.slice(event.lastEventId.lastIndexOf(":") + 1));
    if (event.lastEventId && Number.isNaN(sequence)) {
      // The terminal frame: the run has ended.
      ended = true;
      close();
    }
    hear(Number.isNaN(sequence) || !event.lastEventId ? last : sequence + 1);
  };
  // A browser does not say why a stream ended. What the server says to a fetch does, and brings what was missed.
  source.onerror = () => lost(new Error());
}

function close() {
  source?.close();
  source = null;
}

function connected() {
  again = 0;
  if (release && !ended) open();
  say();
}

/** @param {Error} error */
function lost(error) {
  close();
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries++) * (0.8 + Math.random() * 0.4);
  again = Date.now() + wait;
  clearTimeout(timer);
  if (!error.message.includes("signed out")) timer = window.setTimeout(refresh, wait);
  say(error.message.includes("signed out") ? "You are signed out." : "");
}

/** One tab of a browser has the stream of a run, and tells the others: a browser opens six connections at most. */
function lead() {
  if (release) return open();
  if (!navigator.locks) {
    release = () => undefined;
    return open();
  }
  navigator.locks.request(`seatrial ${run}`, {ifAvailable: false}, () => new Promise((done) => {
    release = () => (done(undefined), (release = null));
    open();
  }));
}

channel.onmessage = ({data}) => {
  ended ||= data.ended;
  hear(data.last);
};
setInterval(() => source && channel.postMessage({last, ended}), APART_MS);

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) {
    hiding = window.setTimeout(() => (close(), release?.()), HIDDEN_MS);
  } else {
    lead();
    plan();
  }
});
addEventListener("pagehide", () => (close(), release?.()));
addEventListener("pageshow", (event) => event.persisted && location.reload());

// The line

/** @param {string} [why] */
function say(why = "") {
  const now = Date.now(), since = Math.max(0, Math.round((now - received) / 1000));
  const ago = since < 2 ? "just now" : `${since.toLocaleString("en")} s ago`;
  line.classList.toggle("lost", again > 0);
  part("word").textContent = again ? "Not connected" : "Live";
  part("said").textContent = again ? `${why || "The server does not answer."} The last event here is ${(last - 1).toLocaleString("en")}, ${ago}.` : last ? `event ${(last - 1).toLocaleString("en")} · received ${ago}` : "no event yet";
  part("next").textContent = again ? `Trying again in ${Math.max(0, Math.ceil((again - now) / 1000))} s; nothing is lost.` : "Survives a restart of the server: it goes on from the last event.";
  part("retry").hidden = !again;
  button.hidden = false;
  const state = part("status");
  if (now - said > SAY_MS || state.dataset.lost !== String(again > 0)) {
    said = now;
    state.dataset.lost = String(again > 0);
    state.textContent = again ? "Not connected" : `Live, event ${last - 1}`;
  }
}

part("retry").addEventListener("click", () => (clearTimeout(timer), refresh()));
setInterval(() => {
  if (document.hidden) return;
  // Time goes on without events. And a tab that another one tells of events would not hear that this one is gone.
  if (!again && Date.now() - fetched > QUIET_MS) refresh();
  say();
}, 1000);
say();
end();
lead();
plan();
