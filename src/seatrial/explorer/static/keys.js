// @ts-check
// Keys. An element with `data-key` is clicked by that key; rows are `[data-row]`, findings `[data-finding]`; a module of
// a page gives keys of its own to `onKeys`. They are off while an input has the focus, and can be switched off for good;
// nothing needs them.

import {fetchFragment} from "./fragment.js";
import {palette} from "./palette.js";
import {note, place} from "./place.js";

/** @type {Record<string, () => unknown>} */
const own = {};

/**
 * Keys that do something else on this page.
 * @param {Record<string, () => unknown>} keys
 */
export const onKeys = (keys) => void Object.assign(own, keys);

const SETTING = "seatrial.keys";
const isOff = () => {
  try {
    return localStorage.getItem(SETTING) === "off";
  } catch {
    return false;
  }
};

/** @type {HTMLElement | null} */
let current = null;

/** @param {string} selector */
const all = (selector) => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]).filter((each) => each.offsetParent !== null);

/**
 * Go to the next of some elements, or the one before.
 * @param {HTMLElement[]} some
 * @param {number} step
 */
function move(some, step) {
  if (!some.length) return;
  if (current && !current.isConnected) current = null;
  const from = current ?? /** @type {HTMLElement | null} */ (document.querySelector(".it.sel, [data-row]:focus, [data-row]:focus-within"));
  let index = from ? some.indexOf(from) : -1;
  if (index < 0) {
    // Where the reader is: behind the place, or at the first that can be seen.
    index = some.findIndex((each) => (from ? from.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING : each.getBoundingClientRect().top > 50));
    if (index < 0) index = some.length;
    index -= step > 0 ? 1 : 0;
  }
  go(some[Math.min(some.length - 1, Math.max(0, index + step))]);
}

/** @param {HTMLElement} element */
function go(element) {
  current = element;
  const item = element.closest(".it");
  if (item) {
    for (const each of document.querySelectorAll(".it.sel")) each.classList.toggle("sel", each === item);
    item.classList.add("sel");
    const pointer = element.dataset.at ?? element.dataset.finding ?? "";
    note({at: pointer});
    document.dispatchEvent(new CustomEvent("seatrial:place", {detail: pointer}));
  }
  const focus = element.matches("a, button, [tabindex]") ? element : element.querySelector("a, button");
  /** @type {HTMLElement | null} */ (focus ?? item)?.focus({preventScroll: true});
  element.scrollIntoView({block: element.offsetHeight > innerHeight / 2 ? "start" : "nearest"});
}

/** @param {string} selector */
const press = (selector) => /** @type {HTMLElement | null} */ (document.querySelector(selector))?.click();

const rows = () => (document.querySelector(".it") ? all(".it") : all("[data-row]"));
const findings = () => {
  const marked = all(".cl.bad, .cl.flt, .it.obj");
  return marked.length ? marked : all("[data-finding], [data-row]").filter((each) => !each.matches("[data-row]") || each.querySelector('[href="#m-failed"]'));
};

/** @param {boolean} everything */
function toggle(everything) {
  const where = everything ? document : current ?? document.querySelector(".it.sel");
  const some = /** @type {HTMLDetailsElement[]} */ ([...(where?.querySelectorAll(".it details.th, details.th") ?? [])]);
  const isOpen = some.every((each) => each.open);
  for (const each of some) each.open = !isOpen;
  if (!everything && !isOpen) return;
  if (!everything) /** @type {HTMLElement | null} */ (where?.querySelector("a[data-open]"))?.click();
}

async function help() {
  let dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("keys"));
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    dialog.className = "sheet";
    dialog.setAttribute("aria-label", "Keys");
    dialog.append(await fetchFragment("/help/keys"), offSwitch());
    const close = document.createElement("form");
    close.method = "dialog";
    const button = document.createElement("button");
    button.className = "ic";
    button.autofocus = true;
    button.textContent = "Close";
    close.append(button);
    dialog.append(close);
    document.body.append(dialog);
  }
  dialog.showModal();
}

function offSwitch() {
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = !isOff();
  box.addEventListener("change", () => localStorage.setItem(SETTING, box.checked ? "on" : "off"));
  label.className = "f2 sw";
  label.append(box, " Single keys are on");
  return label;
}

const status = document.createElement("span");
status.setAttribute("role", "status");
status.className = "f";

/** @param {string} words */
function say(words) {
  // A status that comes with its words is not read out.
  if (!status.isConnected) document.querySelector(".bar .crumbs")?.after(status);
  status.textContent = words;
}

async function copy() {
  await navigator.clipboard?.writeText(location.href);
  say(`The link to ${place() ?? "this page"} is copied.`);
}

/** What is compared with the next one that is marked. @type {{kind: string, id: string} | null} */
let first = null;

/** Mark the row's run or experiment as A, and compare the next one with it. */
function mark() {
  const focused = document.activeElement?.closest("[data-row] a");
  const row = current?.closest("[data-row]") ?? focused?.closest("[data-row]");
  const links = /** @type {HTMLAnchorElement[]} */ ([focused, ...(row?.querySelectorAll("a") ?? [])].filter(Boolean));
  const found = links.map((each) => /^\/(runs|experiments)\/([^/]+)$/.exec(each.pathname ?? "")).find(Boolean);
  if (!rows().some((each) => each.matches("[data-row]"))) return;
  if (!row) return say("Choose a row first: j goes to the next.");
  if (!found) return say("This row has no run and no experiment.");
  const [, kind, id] = found;
  if (!first || first.kind !== kind) {
    for (const each of document.querySelectorAll(".first")) each.classList.remove("first");
    row.classList.add("first");
    first = {kind, id};
    return say(`A is marked. c on another ${kind === "runs" ? "run" : "experiment"} compares it.`);
  }
  location.assign(`/compare${kind === "runs" ? "/runs" : ""}?a=${first.id}&b=${id}`);
}

/** @type {Record<string, () => unknown>} */
const KEYS = {
  "?": help,
  "/": () => {
    const field = /** @type {HTMLElement | null} */ (document.querySelector("form[data-find] input, main input[type=search]"));
    if (field) field.focus();
    else palette();
  },
  j: () => move(rows(), 1),
  k: () => move(rows(), -1),
  J: () => move(all(".cl[data-at], [data-case]"), 1),
  K: () => move(all(".cl[data-at], [data-case]"), -1),
  n: () => move(findings(), 1),
  p: () => move(findings(), -1),
  u: () => /** @type {HTMLElement | undefined} */ ([...document.querySelectorAll(".crumbs a")].pop())?.click(),
  f: () => /** @type {HTMLElement | null} */ (document.querySelector("[data-filter]"))?.focus(),
  c: mark,
  o: () => toggle(false),
  O: () => toggle(true),
  g: () => (document.querySelector("[data-before]") ? press("[data-first-link]") : go(rows()[0])),
  G: () => (document.querySelector("[data-after]") ? press("[data-last-link]") : go(rows()[rows().length - 1])),
  y: copy,
};

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.key === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    palette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented || isOff()) return;
  if (target.closest?.("input, textarea, select, [contenteditable], dialog[open]")) return;
  // What has the focus is opened by it.
  if (event.key === "Enter" && target.closest?.("a, button, summary")) return;
  // A link or a button that has the focus is what Enter means.
  if (event.key === "Enter" && target.closest?.("a, button, summary")) return;
  const given = /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="${CSS.escape(event.key)}"]`));
  const known = [own, KEYS].find((each) => Object.hasOwn(each, event.key));
  const act = given ? () => given.click() : known?.[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("focusin", (event) => {
  const row = /** @type {HTMLElement} */ (event.target).closest?.(".it, [data-row]");
  if (row && !(current && row.contains(current))) current = /** @type {HTMLElement} */ (row);
});

if (location.pathname === "/help/keys") document.querySelector("main")?.append(offSwitch());
