// @ts-check
// The rest of a transcript. A run of usual length is loaded whole while nobody waits, so that the browser's own find,
// select and print see all of it. Of a long one, chunks come when they are near, and those far away make room.

import {fetchFragment} from "./fragment.js";
import {note} from "./place.js";

const MAX_ITEMS = 2000, MAX_BYTES = 1_500_000, MAX_CHUNKS = 30, NEAR = "1200px";

/** @param {HTMLElement} list */
function watch(list) {
  const total = Number(list.dataset.total);
  const isLong = total > MAX_ITEMS;
  let bytes = list.textContent?.length ?? 0;
  let busy = false;

  // Text that is skipped is found by Chromium and Firefox, and not by WebKit.
  const skips = isLong || !CSS.supports("font: -apple-system-body");

  const chunks = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll(":scope > ol.ts, :scope > .box")]);
  const ghost = (/** @type {string} */ which) => /** @type {HTMLElement | null} */ (list.querySelector(`:scope > [data-${which}]`));

  /**
   * Change the list without moving what the reader looks at.
   * @param {() => void} change
   */
  function still(change) {
    const root = document.documentElement;
    const anchor = chunks().flatMap((chunk) => [...chunk.children]).find((item) => item.getBoundingClientRect().bottom > 60);
    const before = anchor?.getBoundingClientRect().top ?? 0;
    root.style.overflowAnchor = "none";
    change();
    if (anchor?.isConnected) scrollBy(0, anchor.getBoundingClientRect().top - before);
    requestAnimationFrame(() => (root.style.overflowAnchor = ""));
  }

  /**
   * Let the browser skip a chunk while it is out of sight. Its height is known by then, so nothing moves.
   * @param {HTMLElement} chunk
   */
  function skip(chunk) {
    if (!skips) return;
    chunk.style.setProperty("contain-intrinsic-block-size", `auto ${chunk.offsetHeight}px`);
    chunk.classList.add("cv");
  }

  /** @param {HTMLElement} edge what stands for the items that are to come */
  async function load(edge) {
    const link = edge.querySelector("a");
    if (busy || !link) return;
    busy = true;
    try {
      const part = await fetchFragment(link.href);
      const isBefore = "before" in edge.dataset;
      // Without `:scope`, which is nothing in a fragment.
      part.querySelector(`[data-${isBefore ? "after" : "before"}]`)?.remove();
      bytes += part.textContent?.length ?? 0;
      const some = /** @type {HTMLElement[]} */ ([...part.querySelectorAll("ol.ts")]);
      still(() => edge.replaceWith(part));
      some.forEach(skip);
      busy = false;
      prune(isBefore);
      follow();
      list.dispatchEvent(new CustomEvent("seatrial:items"));
    } catch (error) {
      busy = false;
      const said = edge.querySelector("span");
      if (said) said.textContent = `${said.textContent?.split(" could ")[0]} could not be loaded: ${/** @type {Error} */ (error).message}. The rest of the page stays.`;
      link.textContent = "Try again";
      edge.dataset.failed = "";
    }
  }

  /**
   * Replace the chunks that are farthest away by boxes of their height.
   * @param {boolean} atStart where the reader is
   */
  function prune(atStart) {
    const kept = chunks().filter((chunk) => chunk.matches("ol"));
    for (const chunk of atStart ? kept.slice(MAX_CHUNKS) : kept.slice(0, Math.max(0, kept.length - MAX_CHUNKS))) {
      const box = document.createElement("div");
      box.className = "box";
      box.dataset.first = chunk.dataset.first;
      box.dataset.end = chunk.dataset.end;
      box.style.height = `${chunk.offsetHeight}px`;
      still(() => chunk.replaceWith(box));
      near.observe(box);
    }
  }

  /** @param {HTMLElement} box */
  async function refill(box) {
    if (busy) return;
    busy = true;
    try {
      const first = Number(box.dataset.first), count = Number(box.dataset.end) - first;
      const show = list.dataset.show ? `&show=${list.dataset.show}` : "";
      const part = await fetchFragment(`/runs/${encodeURIComponent(list.dataset.items ?? "")}/items?from=${first}&count=${count}${show}&v=${list.dataset.v ?? ""}`);
      const chunk = /** @type {HTMLElement | null} */ (part.querySelector("ol.ts"));
      if (!chunk) throw new Error("there are no items");
      near.unobserve(box);
      still(() => box.replaceWith(chunk));
      skip(chunk);
      busy = false;
      prune(chunk.getBoundingClientRect().top < 0);
    } catch {
      busy = false;
    }
  }

  const near = new IntersectionObserver((entries) => {
    for (const {isIntersecting, target} of entries) {
      const element = /** @type {HTMLElement} */ (target);
      if (!isIntersecting || !element.isConnected) continue;
      if (element.matches(".box")) refill(element);
      else if (!("failed" in element.dataset)) load(element);
    }
  }, {rootMargin: NEAR});

  const idle = window.requestIdleCallback ?? ((/** @type {() => void} */ work) => setTimeout(work, 200));

  function follow() {
    near.disconnect();
    const edges = [ghost("after"), ghost("before")].filter((edge) => edge !== null && !("failed" in edge.dataset));
    for (const box of list.querySelectorAll(":scope > .box")) near.observe(box);
    if (isLong || bytes > MAX_BYTES) for (const edge of edges) near.observe(/** @type {Element} */ (edge));
    else if (edges[0]) idle(() => load(/** @type {HTMLElement} */ (edges[0])));
  }

  list.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const edge = /** @type {HTMLElement | null} */ (target.closest(".ghost"));
    const opening = /** @type {HTMLAnchorElement | null} */ (target.closest("a[data-open]"));
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (edge && target.closest("a:not([data-first-link], [data-last-link])")) {
      event.preventDefault();
      delete edge.dataset.failed;
      load(edge);
    } else if (opening) {
      event.preventDefault();
      open(opening).catch(() => location.assign(opening.href));
    }
  });
  list.addEventListener("seatrial:jump", follow);

  /** How many items are loaded. */
  list.addEventListener("seatrial:count", (event) => {
    /** @type {CustomEvent} */ (event).detail.loaded = chunks().filter((chunk) => chunk.matches("ol")).reduce((sum, chunk) => sum + Number(chunk.dataset.end) - Number(chunk.dataset.first), 0);
  });
  follow();
}

/**
 * Show all of a folded text in its place.
 * @param {HTMLAnchorElement} link
 */
async function open(link) {
  const folded = /** @type {HTMLElement | null} */ (link.closest(".px"));
  const part = await fetchFragment(link.dataset.open ?? link.href);
  const whole = /** @type {HTMLElement | null} */ (part.querySelector(".px"));
  if (!folded || !whole) throw new Error("there is no text");
  const pointer = folded.dataset.text ?? "";
  const foldAgain = document.createElement("button");
  foldAgain.className = "lk";
  foldAgain.textContent = "Fold";
  foldAgain.addEventListener("click", () => {
    whole.replaceWith(folded);
    noteOpened(pointer, false);
    folded.closest(".it")?.scrollIntoView({block: "nearest"});
  });
  (whole.querySelector(".fold") ?? whole).append(foldAgain);
  folded.replaceWith(whole);
  noteOpened(pointer, true);
}

/**
 * Write into the address which texts are open.
 * @param {string} pointer
 * @param {boolean} isOpen
 */
export function noteOpened(pointer, isOpen) {
  const now = (new URL(location.href).searchParams.get("open") ?? "").split(",").filter((each) => each && each !== pointer);
  if (isOpen) now.push(pointer);
  note({open: now.slice(-20).join(",") || null});
}

for (const list of document.querySelectorAll("[data-items]")) watch(/** @type {HTMLElement} */ (list));
