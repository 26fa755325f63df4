// @ts-check
// The timeline of a run: panned and zoomed in place, walked by arrows, in step with the place that is looked at.
// The server draws every window of it; while one drags, the drawing that is there is moved.

import {fetchFragment} from "./fragment.js";
import {note, place} from "./place.js";

const box = /** @type {HTMLElement | null} */ (document.getElementById("timeline"));
const PAUSE_MS = 80;

/** @type {AbortController | null} */
let asked = null;
let timer = 0;

/** The drawing, its window, and how wide it is. */
function drawn() {
  const svg = /** @type {SVGSVGElement | null} */ (box?.querySelector("svg.tl"));
  if (!svg) return null;
  const [start, end, whole] = ["start", "end", "whole"].map((name) => Number(svg.dataset[name]));
  return {svg, start, end, whole, width: svg.getBoundingClientRect().width || 1};
}

/**
 * Show a window, or all of it, and note it in the address.
 * @param {number} start
 * @param {number} end
 * @param {number} [wait]
 */
function show(start, end, wait = 0) {
  const now = drawn();
  const part = /** @type {HTMLElement | null} */ (box?.querySelector("[data-timeline]"));
  if (!now || !part) return;
  const length = Math.min(Math.max(end - start, 2), now.whole);
  const from = Math.max(0, Math.min(start, now.whole - length));
  const all = length >= now.whole;
  note({from: all ? null : String(Math.floor(from)), to: all ? null : String(Math.ceil(from + length))});
  clearTimeout(timer);
  timer = window.setTimeout(() => fetchWindow(part.dataset.timeline ?? "", now.width).catch(() => undefined), wait);
}

/**
 * @param {string} address
 * @param {number} width
 */
async function fetchWindow(address, width) {
  asked?.abort();
  const mine = (asked = new AbortController());
  const state = new URL(location.href).searchParams;
  const query = new URLSearchParams({px: String(Math.round(width))});
  for (const name of ["from", "to", "axis", "lanes", "show", "grading"]) {
    const value = state.get(name);
    if (value !== null) query.set(name, value);
  }
  const part = await fetchFragment(`${address}?${query}`, mine.signal);
  if (mine.signal.aborted || !box) return;
  const focus = box.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
  box.replaceChildren(part);
  if (focus) /** @type {HTMLElement | null} */ (box.querySelector(`[data-key="${CSS.escape(focus)}"]`))?.focus();
  walkable();
  point(place());
}

/** One span can be reached by Tab; arrows go on from there. */
function walkable() {
  box?.querySelector("svg.tl a[data-at]")?.setAttribute("tabindex", "0");
}

/**
 * Mark a place in the drawing and in the list of steps.
 * @param {string | null} pointer
 */
function point(pointer) {
  for (const each of document.querySelectorAll("svg.tl a[data-at]")) each.classList.toggle("on", each.getAttribute("data-at") === pointer);
  for (const each of document.querySelectorAll(".out2 a[data-at]")) {
    const here = each.getAttribute("data-at") === pointer;
    each.classList.toggle("here", here);
    if (here) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
    if (here) each.scrollIntoView({block: "nearest"});
  }
}

/** @param {KeyboardEvent} event */
function walk(event) {
  const at = /** @type {Element} */ (event.target).closest?.("svg.tl a[data-at]");
  if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = /** @type {SVGAElement[]} */ ([...(box?.querySelectorAll("svg.tl a[data-at]") ?? [])]);
  const index = all.indexOf(/** @type {SVGAElement} */ (at));
  const next = {ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: all.length - 1}[event.key];
  if (next === undefined || !all[next]) return;
  event.preventDefault();
  at.setAttribute("tabindex", "-1");
  all[next].setAttribute("tabindex", "0");
  all[next].focus();
}

/** @param {PointerEvent} event */
function drag(event) {
  const now = drawn();
  if (!now || event.button || event.pointerType === "touch" || !now.svg.contains(/** @type {Node} */ (event.target))) return;
  const left = now.svg.getBoundingClientRect().left;
  const begin = event.clientX - left;
  const pan = event.shiftKey;
  const unit = (now.end - now.start) / now.width;
  let moved = 0;
  const area = pan ? null : document.createElementNS("http://www.w3.org/2000/svg", "rect");
  area?.setAttribute("class", "br");
  area?.setAttribute("height", "100%");
  /** @param {PointerEvent} each */
  const move = (each) => {
    moved = each.clientX - left - begin;
    if (Math.abs(moved) < 4) return;
    each.preventDefault();
    if (pan) now.svg.style.transform = `translateX(${moved}px)`;
    if (area) {
      if (!area.isConnected) now.svg.append(area);
      area.setAttribute("x", String(Math.min(begin, begin + moved)));
      area.setAttribute("width", String(Math.abs(moved)));
    }
  };
  const stop = () => {
    removeEventListener("pointermove", move);
    area?.remove();
    if (Math.abs(moved) < 4) return;
    // A drag that ends on a span is no click on it.
    const swallow = (/** @type {Event} */ click) => (click.preventDefault(), click.stopPropagation());
    addEventListener("click", swallow, {capture: true});
    setTimeout(() => removeEventListener("click", swallow, {capture: true}), 0);
    if (pan) show(now.start - moved * unit, now.end - moved * unit);
    else show(now.start + Math.min(begin, begin + moved) * unit, now.start + Math.max(begin, begin + moved) * unit);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", stop, {once: true});
  event.preventDefault();
}

/** @param {WheelEvent} event */
function wheel(event) {
  const now = drawn();
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (!now || !now.svg.contains(/** @type {Node} */ (event.target)) || !(event.ctrlKey || sideways)) return;
  event.preventDefault();
  const length = now.end - now.start;
  if (!event.ctrlKey) return show(now.start + (event.deltaX / now.width) * length, now.end + (event.deltaX / now.width) * length, PAUSE_MS);
  const at = now.start + ((event.clientX - now.svg.getBoundingClientRect().left) / now.width) * length;
  const factor = event.deltaY > 0 ? 1.5 : 1 / 1.5;
  show(at - (at - now.start) * factor, at + (now.end - at) * factor, PAUSE_MS);
}

if (box) {
  box.addEventListener("click", (event) => {
    const move = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest?.("a[data-move]"));
    if (!move || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const now = drawn();
    if (!now || move.getAttribute("aria-disabled")) return;
    const to = new URL(move.href).searchParams;
    show(Number(to.get("from") ?? 0), Number(to.get("to") ?? now.whole));
  });
  box.addEventListener("keydown", walk);
  box.addEventListener("pointerdown", drag);
  box.addEventListener("wheel", wheel, {passive: false});
  box.addEventListener("dblclick", (event) => {
    const now = drawn();
    if (now?.svg.contains(/** @type {Node} */ (event.target))) show(0, now.whole);
  });
  document.addEventListener("seatrial:place", (event) => (walkable(), point(/** @type {CustomEvent} */ (event).detail)));
  addEventListener("popstate", () => {
    const part = /** @type {HTMLElement | null} */ (box.querySelector("[data-timeline]"));
    if (part) fetchWindow(part.dataset.timeline ?? "", drawn()?.width ?? 1000).catch(() => undefined);
  });
  walkable();
  point(place());
  // Drawn for a wide page: on a narrow one, fewer spans fit.
  const now = drawn();
  const part = /** @type {HTMLElement | null} */ (box.querySelector("[data-timeline]"));
  if (now && part && now.width < 700) fetchWindow(part.dataset.timeline ?? "", now.width).catch(() => undefined);
}
