// @ts-check
// The place in a run that is looked at: in the address, in the transcript, and wherever else it is shown.
// Others listen to `seatrial:place` on the document, whose detail is the pointer.

import {fetchFragment} from "./fragment.js";

const run = /** @type {HTMLElement | null} */ (document.querySelector("[data-items]"));

/** The pointer of the place, if there is one. */
export const place = () => new URL(location.href).searchParams.get("at");

/**
 * Change parameters of the address; null removes one.
 * @param {Record<string, string | null>} changes
 * @param {boolean} [push] whether going back leads to the address as it was
 */
export function note(changes, push = false) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  url.hash = "";
  const address = url.href.replace(/%2F/gi, "/").replace(/%2C/gi, ",");
  if (address !== location.href) history[push ? "pushState" : "replaceState"](null, "", address);
}

/**
 * The element of a place, if it is loaded: that of the pointer, else of what it is in.
 * @param {string} pointer
 * @returns {HTMLElement | null}
 */
export function elementOf(pointer) {
  const [, list, index] = pointer.split("/");
  const id = index === undefined ? list : `${list}-${index}`;
  const found = id ? document.getElementById(id) : null;
  if (found || list !== "answer") return found;
  return /** @type {HTMLElement | null} */ ([...document.querySelectorAll(".ts > .it")].pop() ?? null);
}

/**
 * Mark an element as the place.
 * @param {HTMLElement} element
 */
export function mark(element) {
  const item = element.closest(".it");
  for (const each of document.querySelectorAll(".it.sel")) if (each !== item) each.classList.remove("sel");
  item?.classList.add("sel");
}

/**
 * Bring a place into view, below what stays at the top.
 * @param {HTMLElement} element that of the item or the step
 * @param {string} pointer
 */
export function show(element, pointer) {
  const inside = /** @type {HTMLElement[]} */ ([...element.querySelectorAll("[data-text]")]);
  const exact = inside.find((each) => `${pointer}/`.startsWith(`${each.dataset.text}/`)) ?? element;
  exact.closest("details")?.setAttribute("open", "");
  const head = /** @type {HTMLElement | null} */ (document.querySelector(".tsh"));
  exact.style.scrollMarginTop = `${52 + (head?.offsetHeight ?? 0)}px`;
  exact.scrollIntoView({block: exact.offsetHeight > innerHeight / 3 ? "start" : "center"});
}

/**
 * Go to a place: one range is fetched when it is not loaded.
 * @param {string} pointer
 * @param {boolean} [push]
 */
export async function select(pointer, push = true) {
  note({at: pointer}, push);
  let element = elementOf(pointer);
  if (!element && run) {
    const show = run.dataset.show ? `&show=${run.dataset.show}` : "";
    const part = await fetchFragment(`/runs/${encodeURIComponent(run.dataset.items ?? "")}/items?at=${encodeURIComponent(pointer)}${show}`);
    run.replaceChildren(part);
    run.dispatchEvent(new CustomEvent("seatrial:jump"));
    element = elementOf(pointer);
  }
  if (element) {
    mark(element);
    show(element, pointer);
    /** @type {HTMLElement | null} */ (element.closest(".it"))?.focus({preventScroll: true});
  }
  document.dispatchEvent(new CustomEvent("seatrial:place", {detail: pointer}));
}

if (run) {
  const here = `/runs/${encodeURIComponent(run.dataset.items ?? "")}`;
  // Links of the timeline, the outline and the findings lead to places of this page.
  document.addEventListener("click", (event) => {
    const link = /** @type {Element} */ (event.target).closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.getAttribute("href") ?? "", location.href);
    const at = url.searchParams.get("at");
    if (url.origin !== location.origin || url.pathname !== here || !at) return;
    const now = new URL(location.href).searchParams;
    // Another view of the run, or another window of its timeline, is another page.
    for (const name of ["show", "from", "to", "axis", "lanes", "grading", "open"]) {
      if (url.searchParams.has(name) && url.searchParams.get(name) !== now.get(name)) return;
    }
    event.preventDefault();
    select(at).catch(() => location.assign(url));
  });
  addEventListener("popstate", () => {
    const at = place();
    if (at) select(at, false).catch(() => location.reload());
  });
  const at = place();
  const element = at && elementOf(at);
  if (at && element) show(element, at);
}
