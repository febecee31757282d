/** In the place of the package `entities`: the browser knows what `&copy;` is. Whatever comes of it is text. */

const known = new Map<string, string>();

/** Replace the entities of a text by the characters that they stand for. */
export function decodeHTML(text: string): string {
  return text.replace(/&(?:#x[0-9a-f]{1,6}|#\d{1,7}|[a-z][a-z0-9]{1,31});/gi, (entity) => {
    let found = known.get(entity);
    if (found === undefined) {
      found = new DOMParser().parseFromString(entity, "text/html").documentElement.textContent ?? entity;
      if (known.size < 500) known.set(entity, found);
    }
    return found;
  });
}

export const decodeHTMLStrict = decodeHTML;
