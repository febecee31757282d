/** What the Markdown parser hands over, with markdown-it's names. */

export class Token {
  content = "";
  info = "";
  /** First line and the one behind the last, from 0. */
  map: [number, number] | null = null;
  meta: unknown = null;
  children: Token[] | null = null;
  hidden = false;
  private readonly attributes = new Map<string, string>();

  constructor(
    public type: string,
    public tag: string,
    public nesting: -1 | 0 | 1,
  ) {}

  attrGet(name: string): string | null {
    return this.attributes.get(name) ?? null;
  }

  attrSet(name: string, value: string): this {
    this.attributes.set(name, value);
    return this;
  }
}
