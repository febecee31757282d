/** The page's side of the frame that draws diagrams: it is made when the first diagram is asked for. */

interface Waiting {
  resolve: (svg: string) => void;
  reject: (error: Error) => void;
  timer: ReturnType<typeof setTimeout>;
}

const WAIT_MS = 20_000;
const MAX_KEPT = 60;

export class Diagrams {
  private frame: HTMLIFrameElement | null = null;
  private ready: Promise<void> = Promise.resolve();
  private next = 1;
  private readonly waiting = new Map<number, Waiting>();
  private readonly kept = new Map<string, Promise<string>>();

  /**
   * @param address The frame's document, which the server sends with a content policy that sandboxes it.
   */
  constructor(private readonly address: string) {}

  /** Draw a diagram; the same text is drawn once. */
  draw(text: string, isDark: boolean): Promise<string> {
    const key = `${isDark ? "dark" : "light"} ${text}`;
    const known = this.kept.get(key);
    if (known) return known;
    const drawn = this.ask(text, isDark);
    this.kept.set(key, drawn);
    drawn.catch(() => this.kept.delete(key));
    const [oldest] = this.kept.keys();
    if (this.kept.size > MAX_KEPT && oldest !== undefined) this.kept.delete(oldest);
    return drawn;
  }

  private async ask(text: string, isDark: boolean): Promise<string> {
    await this.open();
    const id = this.next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.close(new Error("the diagram took too long"));
      }, WAIT_MS);
      this.waiting.set(id, { resolve, reject, timer });
      this.frame?.contentWindow?.postMessage({ id, text, isDark }, "*"); // it has no origin that could be named
    });
  }

  private open(): Promise<void> {
    if (this.frame) return this.ready;
    const frame = document.createElement("iframe");
    this.frame = frame;
    frame.className = "k-diagram-frame";
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("aria-hidden", "true");
    frame.tabIndex = -1;
    frame.title = "Diagrams";
    this.ready = new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error("diagrams can't be drawn here"));
        this.close(new Error("diagrams can't be drawn here"));
      }, WAIT_MS);
      addEventListener("message", (event) => {
        if (event.source !== frame.contentWindow || event.source === null) return;
        const told = event.data as { isReady?: boolean; id?: number; svg?: unknown; problem?: unknown };
        if (told?.isReady) {
          clearTimeout(timer);
          resolve();
          return;
        }
        const waiting = this.waiting.get(Number(told?.id));
        if (!waiting) return;
        this.waiting.delete(Number(told.id));
        clearTimeout(waiting.timer);
        if (typeof told.svg === "string") waiting.resolve(told.svg);
        else waiting.reject(new Error(typeof told.problem === "string" ? told.problem : "it can't be drawn"));
      });
    });
    frame.src = this.address;
    document.body.append(frame);
    return this.ready;
  }

  /** Take the frame away, such as when a diagram keeps it busy; the next one gets a new frame. */
  private close(error: Error): void {
    this.frame?.remove();
    this.frame = null;
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.waiting.clear();
  }
}
