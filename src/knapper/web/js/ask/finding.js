/** Look up notes and folders by a part of their name. */

const MOST = 8;

/** List notes that fit what was typed: by name, path or words. */
export async function notes(api, typed) {
  const words = typed.split(/[\s/]+/).filter(Boolean);
  if (!words.length) return [];
  const query = words.map((word, at) => (at === words.length - 1 ? `${word}*` : word)).join(" ");
  const { results } = await api.tool("search_keyword", { query, limit: MOST });
  return results.map((one) => ({ value: one.path, about: one.match === "title" ? "" : `in its ${one.match}` }));
}

/** List folders that fit: the last part of what was typed is looked for in the folder before it. */
export async function folders(api, typed) {
  const at = typed.lastIndexOf("/");
  const [above, part] = [typed.slice(0, Math.max(at, 0)), typed.slice(at + 1).toLowerCase()];
  const { folders: all } = await api.tool("explore_vault", { folder: above, limit: 1 });
  const fits = all.filter((one) => one.path.split("/").at(-1).toLowerCase().includes(part));
  return fits.slice(0, MOST).map((one) => ({ value: one.path, about: `${one.notes} notes` }));
}
