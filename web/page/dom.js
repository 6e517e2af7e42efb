// Small helpers for the page. Texts from a server only ever become text nodes.

/** @param {string} id @returns {any} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/**
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(string | Node)} children
 */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @param {string} id @param {string} text */
export function say(id, text) {
  byId(id).textContent = text;
}

/** @param {string} id @param {boolean} visible */
export function show(id, visible) {
  byId(id).hidden = !visible;
}
