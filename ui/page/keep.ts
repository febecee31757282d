/** Keep a few words in this browser, for this address alone; where it keeps nothing, the page works all the same. */

const PREFIX = "knapper.";

export function load(name: string): string {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

export function save(name: string, text: string): void {
  try {
    if (text) localStorage.setItem(PREFIX + name, text);
    else localStorage.removeItem(PREFIX + name);
  } catch {
    // A browser that keeps nothing: signing in lasts as long as the page is open.
  }
}
