// @ts-check
// HTML of the server comes into a page here and nowhere else: parts of the same origin that say that they are parts.

const HEADER = "Seatrial-Fragment";

/** @type {{createHTML(text: string): any}} */
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("seatrial", {createHTML: (/** @type {string} */ text) => text}) ?? {createHTML: (text) => text};

/**
 * A part of a page.
 * @param {string} address
 * @param {AbortSignal} [signal]
 * @returns {Promise<DocumentFragment>}
 */
export async function fetchFragment(address, signal) {
  const url = new URL(address, location.href);
  if (url.origin !== location.origin) throw new Error("it is on another site");
  const answer = await fetch(url, {headers: {[HEADER]: "1", Accept: "text/html"}, signal});
  if (!answer.ok) throw new Error(answer.status === 401 ? "you are signed out" : `the server answered ${answer.status}`);
  if (answer.headers.get(HEADER) !== "1" || answer.redirected) throw new Error("the server answered with something else");
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(await answer.text());
  return template.content;
}
