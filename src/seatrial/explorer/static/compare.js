// @ts-check
// Keys of pages that compare: n and p go to the next and the previous difference, j and k to the next row, o and O open
// equal steps; links that have a key of their own (`data-key`) are followed by it.

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

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "n") go(differing, 1, "next");
  else if (event.key === "p") go(differing, -1, "prev");
  else if (event.key === "j") go(rows, 1, "next");
  else if (event.key === "k") go(rows, -1, "prev");
  else if (event.key === "o") folds.find((fold) => fold.contains(document.activeElement))?.toggleAttribute("open");
  else if (event.key === "O") {
    const open = !folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = open;
  }
  else if (event.key === "x") /** @type {HTMLElement | null} */ (document.querySelector('[data-key="x"]'))?.click();
});

// A place in the address is shown, unless a part of the page was asked for.
if (!location.hash) document.querySelector(".here")?.scrollIntoView({block: "center"});
