/** Look up notes and folders by a part of their name; what is found says whether the index may have more in a moment. */

import { count } from "../dom.js";

const MOST = 8;

/** List notes that fit what was typed: by name, path or words. */
export async function notes(api, typed) {
  const words = typed.split(/[\s/]+/).filter(Boolean);
  if (!words.length) return { rows: [] };
  const query = words.map((word, at) => (at === words.length - 1 ? `${word}*` : word)).join(" ");
  const { results, index_incomplete: isPartial } = await api.tool("search_keyword", { query, limit: MOST });
  const rows = results.map((one) => ({ value: one.path, about: one.match === "title" ? "" : `in its ${one.match}` }));
  return { rows, isPartial };
}

/** List folders that fit: the last part of what was typed is looked for in the folder before it. */
export async function folders(api, typed) {
  const at = typed.lastIndexOf("/");
  const [above, part] = [typed.slice(0, Math.max(at, 0)), typed.slice(at + 1).toLowerCase()];
  const { folders: all, index_incomplete: isPartial } = await api.tool("explore_vault", { folder: above, limit: 1 });
  const fits = all.filter((one) => one.path.split("/").at(-1).toLowerCase().includes(part));
  const rows = fits.slice(0, MOST).map((one) => ({ value: one.path, about: count(one.notes, "note") }));
  return { rows, isPartial };
}
