// @ts-check
// Find in the whole run: the server looks, also where nothing is loaded. The browser's own find stays what it is.

import {fetchFragment} from "./fragment.js";
import {note, select} from "./place.js";

const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-find]"));
const found = document.getElementById("found");
const list = /** @type {HTMLElement | null} */ (document.querySelector("[data-items]"));

if (form && found && list) {
  const input = /** @type {HTMLInputElement} */ (form.elements.namedItem("q"));
  /** @type {AbortController | undefined} */
  let asking;
  let shown = "";

  const hits = () => /** @type {HTMLElement[]} */ ([...found.querySelectorAll("a[data-hit]")]);

  /** @param {string} address */
  async function look(address) {
    asking?.abort();
    asking = new AbortController();
    try {
      found.replaceChildren(await fetchFragment(address, asking.signal));
    } catch (error) {
      if (/** @type {Error} */ (error).name === "AbortError") return;
      found.textContent = `The run could not be searched: ${/** @type {Error} */ (error).message}.`;
    }
  }

  /** Mark what was looked for in what is loaded, without changing it. */
  function highlight() {
    const registry = /** @type {any} */ (CSS).highlights;
    if (!registry) return;
    registry.delete("found");
    const query = shown.toLowerCase();
    const item = list?.querySelector(".it.sel");
    if (!query || !item) return;
    const ranges = [];
    const walker = document.createTreeWalker(item, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < 500; node = walker.nextNode()) {
      const text = (node.nodeValue ?? "").toLowerCase();
      for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + query.length);
        ranges.push(range);
      }
    }
    registry.set("found", new /** @type {any} */ (window).Highlight(...ranges));
  }

  /** @param {number} step */
  async function go(step) {
    const all = hits();
    if (!all.length) return;
    const now = all.findIndex((hit) => hit.hasAttribute("aria-current"));
    const next = all[now < 0 ? (step > 0 ? 0 : all.length - 1) : (now + step + all.length) % all.length];
    for (const hit of all) hit.toggleAttribute("aria-current", hit === next);
    next.scrollIntoView({block: "nearest"});
    const typing = document.activeElement === input;
    await select(next.dataset.hit ?? "", false);
    highlight();
    if (typing) input.focus({preventScroll: true});
  }

  function close() {
    asking?.abort();
    shown = input.value = "";
    found?.replaceChildren();
    highlight();
    note({find: null});
    input.blur();
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = input.value;
    if (!query.trim()) return close();
    if (query === shown) return go(1);
    shown = query;
    note({find: query});
    await look(`${form.action}?q=${encodeURIComponent(query)}`);
    await go(1);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && event.shiftKey) {
      event.preventDefault();
      go(-1);
    }
  });
  found.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const hit = target.closest("a[data-hit]");
    const more = /** @type {HTMLAnchorElement | null} */ (target.closest("a[data-more]"));
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (hit) {
      for (const each of hits()) each.toggleAttribute("aria-current", each === hit);
      requestAnimationFrame(() => setTimeout(highlight, 150));
    } else if (more) {
      event.preventDefault();
      look(more.href);
    }
  });
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "f" || found.childElementCount) return;
    const detail = {loaded: 0};
    list.dispatchEvent(new CustomEvent("seatrial:count", {detail}));
    if (detail.loaded < Number(list.dataset.total)) {
      found.textContent = `The browser's own find sees only the ${detail.loaded} items that are loaded; “Find in this run” looks through all ${list.dataset.total}.`;
    }
  });
  const wanted = new URL(location.href).searchParams.get("find");
  if (wanted) {
    input.value = shown = wanted;
    look(`${form.action}?q=${encodeURIComponent(wanted)}`).then(highlight);
  }
}
