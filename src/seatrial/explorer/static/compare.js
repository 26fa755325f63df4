// @ts-check
// Keys of pages that compare: n and p go to the next and the previous difference, j and k to the next row, o and O open
// equal steps.

import {onKeys} from "./keys.js";

const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".row[id], .eq")]);
const differing = rows.filter((row) => row.matches(".diff"));
const folds = /** @type {HTMLDetailsElement[]} */ (rows.filter((row) => row.matches("details")));

/** @param {HTMLElement[]} some @param {number} step @param {string} beyond */
function go(some, step, beyond) {
  const top = (/** @type {HTMLElement} */ row) => row.getBoundingClientRect().top;
  const focused = some.findIndex((row) => row.contains(document.activeElement));
  let at = focused + step;
  if (focused < 0) {
    const below = some.findIndex((row) => top(row) > 80);
    at = step > 0 ? below : (below < 0 ? some.length : below) - 1;
  }
  const row = some[at];
  if (row) {
    const target = /** @type {HTMLElement} */ (row.querySelector("summary") ?? row);
    target.focus();
    row.scrollIntoView({block: "center"});
  } else {
    /** @type {HTMLAnchorElement | null} */ (document.querySelector(`a[rel=${beyond}]`))?.click();
  }
}

onKeys({
  n: () => go(differing, 1, "next"),
  p: () => go(differing, -1, "prev"),
  j: () => go(rows, 1, "next"),
  k: () => go(rows, -1, "prev"),
  o: () => folds.find((fold) => fold.contains(document.activeElement))?.toggleAttribute("open"),
  O: () => {
    const open = !folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = open;
  },
});

// A place in the address is shown, unless a part of the page was asked for.
if (!location.hash) document.querySelector(".here")?.scrollIntoView({block: "center"});
