// @ts-check
// The palette: what one may go to, from the server, and what can be done on the page, with its key. Whatever is in it
// is a link or a button elsewhere, too.

import {fetchFragment} from "./fragment.js";

const WAIT_MS = 80;

/** @type {HTMLDialogElement | undefined} */
let dialog;

/**
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(Node | string)} content
 */
function make(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

/** What has a key on this page: its words, the key, and what is pressed. */
function actions() {
  const keyed = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-key]")]).filter((each) => each.offsetParent !== null);
  return keyed.map((each) => ({words: (each.getAttribute("aria-label") || each.title || each.textContent || "").trim(), key: each.dataset.key ?? "", each}));
}

/** The experiment that the page belongs to. */
function experiment() {
  const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector('.crumbs a[href^="/experiments/"]'));
  return decodeURIComponent((link ?? location).pathname.match(/^\/experiments\/([^/]+)/)?.[1] ?? "");
}

function built() {
  const input = /** @type {HTMLInputElement} */ (make("input", {
    role: "combobox", "aria-label": "Search or go to", "aria-autocomplete": "list", "aria-expanded": "true", "aria-controls": "places",
    placeholder: "Search or go to…", autocomplete: "off", spellcheck: "false", maxlength: "500",
  }));
  const list = make("div", {id: "places", role: "listbox", "aria-label": "Places"});
  const box = /** @type {HTMLDialogElement} */ (make("dialog", {class: "sheet pal", "aria-label": "Search or go to"}, input, list));
  document.body.append(box);
  /** @type {AbortController | undefined} */
  let asking;
  let timer = 0;
  let isStale = true;

  const options = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=option]")]);
  const active = () => /** @type {HTMLElement | null} */ (list.querySelector("[aria-selected=true]"));

  /** @param {HTMLElement | undefined} option */
  function activate(option) {
    for (const [index, each] of options().entries()) {
      each.id = `place-${index}`;
      each.setAttribute("aria-selected", String(each === option));
    }
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({block: "nearest"});
  }

  function doing() {
    const wanted = input.value.trim().toLowerCase();
    const some = actions().filter(({words}) => words.toLowerCase().includes(wanted));
    if (!some.length) return [];
    const group = make("div", {role: "group", "aria-label": "Do"}, make("span", {class: "lb", "aria-hidden": "true"}, "Do"));
    for (const {words, key, each} of some) {
      const option = make("div", {role: "option", "aria-selected": "false"}, words, " ", make("kbd", {}, key));
      option.addEventListener("click", () => {
        box.close();
        each.click();
      });
      group.append(option);
    }
    return [group];
  }

  async function look() {
    asking?.abort();
    asking = new AbortController();
    const {signal} = asking;
    const asked = new URLSearchParams({q: input.value});
    if (experiment()) asked.set("experiment", experiment());
    try {
      const part = await fetchFragment(`/search/go?${asked}`, signal);
      if (signal.aborted) return;
      list.replaceChildren(part, ...doing());
    } catch (error) {
      if (signal.aborted) return;
      list.replaceChildren(make("p", {class: "foot", role: "alert"}, `Nothing could be looked for: ${/** @type {Error} */ (error).message}.`), ...doing());
    }
    isStale = false;
    activate(options()[0]);
  }

  input.addEventListener("input", () => {
    isStale = true;
    clearTimeout(timer);
    timer = setTimeout(look, WAIT_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const all = options();
    const now = active();
    const at = now ? all.indexOf(now) : -1;
    if (event.key === "ArrowDown") activate(all[(at + 1) % all.length]);
    else if (event.key === "ArrowUp") activate(all.at(Math.max(0, at) - 1));
    else if (event.key === "Enter") {
      // What is listed may be of what was typed before.
      if (isStale || !now) location.assign(`/search?q=${encodeURIComponent(input.value)}`);
      else now.click();
    } else return;
    event.preventDefault();
  });
  box.addEventListener("click", (event) => {
    // A place of the page that is open is no new page.
    if (event.target === box || /** @type {Element} */ (event.target).closest("a")) box.close();
  });
  box.addEventListener("open", look);
  return box;
}

/** Open the palette. */
export function palette() {
  if (!document.querySelector("[data-palette]")) return;
  dialog ??= built();
  if (dialog.open) return;
  dialog.showModal();
  dialog.querySelector("input")?.select();
  dialog.dispatchEvent(new CustomEvent("open"));
}

document.querySelector("[data-palette]")?.addEventListener("click", (event) => {
  const click = /** @type {MouseEvent} */ (event);
  if (click.button || click.metaKey || click.ctrlKey || click.shiftKey) return;
  event.preventDefault();
  palette();
});
