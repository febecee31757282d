/** Find what a link in an answer cites: the checked citations stand in the order of the links. */

/**
 * Open what a link names: the passage that was checked, otherwise the note.
 *
 * @param {{target: string}} link
 * @param {number} number Which of the answer's links it is.
 * @param {Array<object>} citations
 * @param {{openCitation: Function, openNote: Function}} does
 */
export function follow(link, number, citations, does) {
  const named = bare(link.target.split("#")[0]);
  const fits = (one) => Boolean(one) && isNamed(one, named);
  const found = fits(citations[number]) ? citations[number] : citations.find(fits);
  if (found) does.openCitation(found);
  else does.openNote(link);
}

/** Tell whether a note is meant; one of another vault has that vault's name before its own. */
function isNamed({ path, vault = "" }, named) {
  const prefix = vault ? `${vault.toLowerCase()}:` : "";
  if (!named.startsWith(prefix)) return false;
  const rest = named.slice(prefix.length).trim();
  return bare(path) === rest || bare(path).endsWith(`/${rest}`);
}

function bare(path) {
  return path.trim().replace(/\.md$/i, "").toLowerCase();
}
