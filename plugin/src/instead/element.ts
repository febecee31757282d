/** What elements are drawn by in main.js: children as arguments, which takes less room than `jsx` with its lists. */

export { createElement as jsxElement, Fragment as jsxFragment } from "preact";
