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

/** What was being written to a vault in this tab; it outlasts a reload, and ends with the tab. */
export function loadDraft(vault: string): string {
  try {
    return sessionStorage.getItem(`${PREFIX}draft ${vault}`) ?? "";
  } catch {
    return "";
  }
}

export function saveDraft(vault: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(`${PREFIX}draft ${vault}`, text);
    else sessionStorage.removeItem(`${PREFIX}draft ${vault}`);
  } catch {
    // A browser that keeps nothing, or not as much: what is written lasts as long as the page is open.
  }
}

export function dropDrafts(): void {
  try {
    sessionStorage.clear();
  } catch {
    // A browser that keeps nothing has nothing to drop.
  }
}
