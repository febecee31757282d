/** Build what the page shows. Text is always text: nothing here reads markup. */

/**
 * Make an element.
 *
 * @param {string} tag
 * @param {Record<string, unknown>} attributes Names as in HTML; `onclick` and the like take functions.
 * @param {...unknown} children Nodes and texts, in lists too; null, undefined and false are left out.
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    set(node, name, value);
  }
  node.append(...shown(children));
  return node;
}

/** Put other children in the place of a node's own. */
export function fill(node, ...children) {
  node.replaceChildren(...shown(children));
  return node;
}

/** Find the page's own element. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Make a button that does something. */
export function button(label, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, label);
}

/** Make a button that shows a sign, and says in words what it does. */
export function sign(symbol, label, onclick, attributes = {}) {
  const own = { class: "sign", "aria-label": label, title: label, ...attributes };
  return button(el("span", { "aria-hidden": "true" }, symbol), onclick, own);
}

/** Say something that only screen readers tell. */
export function hidden(text) {
  return el("span", { class: "unseen" }, text);
}

/** Say a number of things: `count(2, "hunk")` is "2 hunks". */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Run work at the next frame, once however often it is asked for. */
export function atNextFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

function set(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) {
    node.addEventListener(name.slice(2), value);
  } else if (name === "class") {
    node.className = String(value);
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

function shown(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
}
