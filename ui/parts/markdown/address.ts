/** Addresses of links: what kind they are, and where they lead. */

/** Which kind of address a link has; what is neither a note nor a page of the web can't be followed. */
export function kindOfAddress(address: string): "web" | "note" | "place" | "none" {
  const clean = address.trim();
  if (/^(https?:\/\/|mailto:)/i.test(clean)) return "web";
  if (/^[a-z][a-z0-9+.-]*:/i.test(clean) || /^(\/\/|\\)/.test(clean) || hasControl(clean)) return "none";
  return clean.startsWith("#") ? "place" : "note";
}

function hasControl(text: string): boolean {
  return [...text].some((sign) => sign.charCodeAt(0) < 32);
}

/** Where a link of the web leads, for beside its text; empty where the text is that very address, or says its host. */
export function whereOf(address: string, text: string): string {
  let url: URL;
  try {
    url = new URL(address.trim());
  } catch {
    return address;
  }
  const where = url.hostname || url.pathname;
  const isTold = [url.href, decoded(url.href), where].includes(text) || `${text}/` === url.href;
  return isTold && !url.username && !url.password ? "" : where; // https://bank.example@evil.example is no bank's
}

/** An address without its percent signs, where they stand for something. */
export function decoded(address: string): string {
  try {
    return decodeURIComponent(address);
  } catch {
    return address;
  }
}
