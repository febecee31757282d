/** Images, recordings, films and PDFs of a vault: fetched with the reader's own rights, and shown from memory. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Client } from "../../client";
import { Icon, type IconName } from "../basic";
import { noteName } from "../format";
import { useHost } from "../host";

export type MediaKind = "image" | "audio" | "video" | "pdf";

const KINDS: Readonly<Record<string, MediaKind>> = {
  avif: "image", bmp: "image", gif: "image", jpeg: "image", jpg: "image", png: "image", svg: "image", webp: "image",
  "3gp": "audio", flac: "audio", m4a: "audio", mp3: "audio", ogg: "audio", opus: "audio", wav: "audio",
  mkv: "video", mov: "video", mp4: "video", ogv: "video", webm: "video",
  pdf: "pdf",
};

/** What a file is, by the ending of its name; undefined for what isn't shown. */
export function mediaKindOf(path: string): MediaKind | undefined {
  const ending = /\.([a-z0-9]{1,5})$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(KINDS, ending) ? KINDS[ending] : undefined;
}

const MAX_KEPT = 80;

/** Attachments in memory, by their path; the oldest are given up. */
export class Attachments {
  private readonly kept = new Map<string, Promise<string | undefined>>();

  constructor(private readonly client: Client) {}

  /** The `blob:` address of an attachment; undefined where it can't be had. */
  address(path: string, signal?: AbortSignal): Promise<string | undefined> {
    const known = this.kept.get(path);
    if (known) return known;
    const asked = this.client
      .blob(`/attachments/${path.split("/").map(encodeURIComponent).join("/")}`, signal ? { signal } : {})
      .then((blob) => URL.createObjectURL(blob))
      .catch(() => {
        this.kept.delete(path);
        return undefined;
      });
    this.kept.set(path, asked);
    const [oldest] = this.kept.keys();
    if (this.kept.size > MAX_KEPT && oldest !== undefined) this.forget(oldest);
    return asked;
  }

  /** Give an attachment up, such as because it was changed. */
  forget(path: string): void {
    void this.kept.get(path)?.then((address) => address && URL.revokeObjectURL(address));
    this.kept.delete(path);
  }
}

const ICONS: Readonly<Record<MediaKind, IconName>> = { image: "image", audio: "play", video: "play", pdf: "file" };

interface MediaProps {
  /** In the vault; undefined where the link leads nowhere. */
  path: string | undefined;
  /** As the note writes it. */
  name: string;
  /** What it shows; its name where the note doesn't say. */
  text?: string;
  /** In px, as Obsidian writes it behind a bar. */
  width?: number | undefined;
}

/** An attachment in a text; loaded when it comes near the window. */
export function Media({ path, name, text, width }: MediaProps): JSX.Element {
  const host = useHost();
  const node = useRef<HTMLSpanElement>(null);
  const [address, setAddress] = useState<string | null | undefined>(path && host.image ? undefined : null);
  useEffect(() => {
    const image = host.image?.bind(host);
    if (!path || !image || !node.current) return undefined;
    const stop = new AbortController();
    const show = (found?: string) => !stop.signal.aborted && setAddress(found ?? null);
    const load = () => void image(path, stop.signal).then(show, () => show());
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        load();
      },
      { rootMargin: "600px" },
    );
    observer.observe(node.current);
    return () => {
      stop.abort();
      observer.disconnect();
    };
  }, [path]);

  const kind = mediaKindOf(path ?? name) ?? "image";
  const label = text || noteName(name);
  if (address === null) {
    return (
      <span class="k-embed" data-missing="">
        <Icon name={kind === "image" ? "image-off" : ICONS[kind]} />
        <span>{label}</span>
        <span class="k-quiet">{path ? "can't be shown" : "isn't in the vault"}</span>
      </span>
    );
  }
  if (address === undefined) return <span ref={node} class="k-media-room" role="status" aria-label={`Loading ${label}`} />;
  if (kind === "image") return <img class="k-media" src={address} alt={label} width={width} onError={() => setAddress(null)} />;
  if (kind === "audio") return <audio class="k-media" src={address} controls aria-label={label} />;
  if (kind === "video") return <video class="k-media" src={address} controls aria-label={label} />;
  return (
    <span class="k-embed">
      <Icon name="file" />
      <span>{label}</span>
      <a href={address} download={noteName(name)}>
        Download
      </a>
    </span>
  );
}

/** The width that a picture's text asks for: `300` or `300x200`. */
export function widthOf(shown: string): number | undefined {
  const found = /^(\d{1,4})(?:x\d{1,4})?$/.exec(shown.trim());
  return found ? Number(found[1]) : undefined;
}
