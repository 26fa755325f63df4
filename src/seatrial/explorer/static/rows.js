// @ts-check
// The next cases of a matrix come into its table; without this, their link leads to them.

import {fetchFragment} from "./fragment.js";

document.addEventListener("click", async (event) => {
  const link = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest("a[data-rows]"));
  const row = link?.closest("tr");
  if (!link || !row || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  link.textContent = "Loading…";
  try {
    const found = await fetchFragment(link.dataset.rows ?? "");
    const first = /** @type {HTMLElement | null} */ (found.querySelector("tr a"));
    row.replaceWith(found);
    first?.focus({preventScroll: true});
  } catch {
    location.href = link.href;
  }
});
