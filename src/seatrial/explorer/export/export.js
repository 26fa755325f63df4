// Searches and sorts the runs of an exported file. It is one classic script, for browsers load no modules from a disk.
// What it reads was escaped when it was written, and it writes text alone.
(() => {
  "use strict";
  const list = document.querySelector("[data-list]");
  const [bar, help] = document.querySelectorAll("[data-look]");
  /** Opens what a link leads into. */
  const open = () => {
    let name = "";
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const found = name && document.getElementById(name);
    if (!found) return;
    for (let at = found; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    found.scrollIntoView();
  };
  addEventListener("hashchange", open);
  if (!list || !bar) return open();

  const field = bar.querySelector("input"), order = bar.querySelector("select"), said = bar.querySelector("[role=status]");
  const runs = [...list.querySelectorAll(":scope > [data-o]")];
  const words = new WeakMap();
  /** All that a run has in this file. */
  const textOf = (run) => {
    if (!words.has(run)) words.set(run, `${run.textContent}\n${run.dataset.t}`.toLowerCase());
    return words.get(run);
  };
  const NAMES = { agent: "a", case: "c", verdict: "o", outcome: "o", tag: "t" };
  const NUMBERS = ["score", "steps", "duration", "cost", "trial"];
  const UNITS = { ms: 1, s: 1e3, m: 6e4, h: 36e5, "$": 1, "\u00a2": 0.01, k: 1e3 };
  const TERM = /(-?)(?:([a-z]+)(>=|<=|!=|[:=<>]))?("[^"]*"?|\S+)/gi;

  /** What a wildcard stands for. */
  const pattern = (text) => new RegExp(`^${text.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".")}$`, "i");

  /** A number with its unit; NaN for what is none. */
  const numberOf = (text, name) => {
    const found = /^\$?(\d+(?:\.\d+)?)(ms|s|m|h|\$|\u00a2|k)?$/i.exec(text);
    if (!found) return NaN;
    const unit = (found[2] || (name === "duration" ? "ms" : "$")).toLowerCase();
    return Number(found[1]) * UNITS[unit];
  };

  /** The tests of a filter: each says true, false, or null where it is not known. Or why there are none. */
  const testsOf = (text) => {
    const tests = [];
    for (const [, not, name, sign, raw] of text.matchAll(TERM)) {
      const value = raw.replace(/^"|"$/g, "");
      if (!value) continue;
      let test;
      const known = name && name.toLowerCase();
      if (!name) {
        const low = value.toLowerCase();
        test = (run) => textOf(run).includes(low);
      } else if (NAMES[known]) {
        const some = value.split(",").map(pattern), key = NAMES[known];
        const hit = (run) => run.dataset[key].split("\n").some((each) => some.some((one) => one.test(each)));
        if (sign !== ":" && sign !== "=" && sign !== "!=") return `${known} is a name: write ${known}:${value}`;
        test = sign === "!=" ? (run) => !hit(run) : hit;
      } else if (NUMBERS.includes(known)) {
        const wanted = numberOf(value, known);
        if (Number.isNaN(wanted)) return `\u201c${value}\u201d is not a number`;
        test = (run) => {
          if (run.dataset[known] === undefined) return null;
          const is = Number(run.dataset[known]);
          return { ">": is > wanted, ">=": is >= wanted, "<": is < wanted, "<=": is <= wanted, "!=": is !== wanted }[sign] ?? is === wanted;
        };
      } else return `There is no field \u201c${name}\u201d here. Known: ${[...Object.keys(NAMES), ...NUMBERS].join(", ")}`;
      tests.push(not ? (run) => { const is = test(run); return is === null ? null : !is; } : test);
    }
    return tests;
  };

  const show = () => {
    const tests = testsOf(field.value);
    field.setAttribute("aria-invalid", String(typeof tests === "string"));
    bar.dataset.shown = field.value;
    if (typeof tests === "string") { said.textContent = tests; return; }
    let shown = 0;
    for (const run of runs) {
      run.hidden = !tests.every((test) => test(run) === true);
      shown += run.hidden ? 0 : 1;
    }
    const more = Number(list.dataset.more || 0);
    said.textContent = `${shown.toLocaleString("en")} of ${runs.length.toLocaleString("en")} runs`
      + (more ? `; ${more.toLocaleString("en")} more are not in this list, and not searched` : "");
  };

  const sort = () => {
    const by = order.value, key = { case: "c", agent: "a" }[by];
    const sorted = !by ? runs : [...runs].sort((one, other) => {
      if (key) return one.dataset[key] < other.dataset[key] ? -1 : one.dataset[key] > other.dataset[key] ? 1 : 0;
      const [first, second] = [one.dataset[by], other.dataset[by]];
      // What is not known is no number: it stands at the end.
      if (first === undefined || second === undefined) return (first === undefined) - (second === undefined);
      return by === "score" ? first - second : second - first;
    });
    list.append(...sorted);
  };

  let waiting = 0;
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(show, 120); });
  order.addEventListener("change", sort);
  bar.hidden = false;
  help.hidden = false;
  show();
  open();
})();
