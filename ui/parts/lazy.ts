/** Load styles that only some notes need; scripts are loaded by `import()`. */

const loading = new Map<string, Promise<void>>();

/** Load the style of a file `NAME.lazy.css`, once; where all styles are loaded already, as in Obsidian, nothing is done. */
export function loadStyle(name: string): Promise<void> {
  const known = loading.get(name);
  if (known) return known;
  const address = document.querySelector<HTMLMetaElement>(`meta[name="k-style-${name}"]`)?.content;
  const done = address ? append(address) : Promise.resolve();
  loading.set(name, done);
  return done;
}

function append(address: string): Promise<void> {
  return new Promise((resolve) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = address;
    link.addEventListener("load", () => resolve());
    link.addEventListener("error", () => resolve());
    document.head.append(link);
  });
}
