// @ts-check
// The field of a filter: what may follow is listed under it, from the server. Nothing that was typed is changed but by
// a choice from the list, and Enter without one filters.

import {fetchFragment} from "./fragment.js";

const WAIT_MS = 60;

/** @param {HTMLInputElement} field */
function suggest(field) {
  const list = document.createElement("div");
  field.after(list);
  for (const [name, value] of Object.entries({role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "suggestions"})) field.setAttribute(name, value);
  /** @type {AbortController | undefined} */
  let asking;
  let timer = 0;

  const options = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=option]")]);
  const active = () => /** @type {HTMLElement | null} */ (list.querySelector("[aria-selected=true]"));

  function close() {
    clearTimeout(timer);
    asking?.abort();
    list.replaceChildren();
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  async function look() {
    close();
    asking = new AbortController();
    // The server counts characters, and not the halves of some that JavaScript counts.
    const caret = [...field.value.slice(0, field.selectionStart ?? 0)].length;
    const asked = new URLSearchParams({q: field.value, caret: String(caret)});
    if (field.dataset.filter) asked.set("experiment", field.dataset.filter);
    const signal = asking.signal;
    // Without suggestions, one can still type.
    const part = await fetchFragment(`/filter/suggest?${asked}`, signal).catch(() => null);
    if (!part || signal.aborted || document.activeElement !== field) return;
    list.replaceChildren(part);
    if (options().length) field.setAttribute("aria-expanded", "true");
    else list.replaceChildren();
  }

  /** @param {HTMLElement | undefined} option */
  function activate(option) {
    for (const each of options()) each.setAttribute("aria-selected", String(each === option));
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({block: "nearest"});
  }

  /** @param {HTMLElement} option */
  function take(option) {
    const text = [...field.value];
    const insert = option.dataset.insert ?? "";
    const rest = text.slice(Number(option.dataset.end)).join("");
    const more = insert.endsWith(":");
    const begun = text.slice(0, Number(option.dataset.start)).join("") + insert + (more || rest ? "" : " ");
    field.value = begun + rest;
    field.setSelectionRange(begun.length, begun.length);
    field.focus();
    if (more) look();
    else close();
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, WAIT_MS);
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = options();
    const now = active();
    const at = now ? all.indexOf(now) : -1;
    if (event.key === "ArrowDown" && !all.length) look();
    else if (event.key === "ArrowDown") activate(all[at + 1]);
    else if (event.key === "ArrowUp") activate(all[at < 0 ? all.length - 1 : at - 1]);
    else if (event.key === "Escape") {
      if (!all.length) return field.blur();
      close();
    } else if (now && (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey))) take(now);
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => {
    const option = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[role=option]"));
    event.preventDefault();
    if (option && !event.button) take(option);
  });
}

for (const field of document.querySelectorAll("input[data-filter]")) suggest(/** @type {HTMLInputElement} */ (field));
