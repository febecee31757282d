/** Pair a device: a code with its link and QR code, how long it is good, and who used it. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { failureOf, isAbort, type Failure, type Reply } from "../../client";
import { Button, Field, Icon } from "../basic";
import { DialogFrame } from "../floating";
import { useHost, type Host } from "../host";
import type { Resource } from "../resource";
import { FailureNotice } from "../rows";
import { countdown, qrPath } from "./model";

type Code = Reply<"post", "/pair/codes">;
type Clients = Reply<"get", "/clients">;

const LOOK_MS = 2_000;
const TICK_MS = 500;

/** Show the dialog; resolves when it is closed. */
export function openPairing(host: Host, clients: Resource<Clients>): Promise<void> {
  return host.floaters.dialog((close) => <Pairing clients={clients} onClose={close} />);
}

function Pairing({ clients, onClose }: { clients: Resource<Clients>; onClose: () => void }): JSX.Element {
  const { client } = useHost();
  const name = useSignal("");
  const address = useSignal("");
  const failure = useSignal<Failure | null>(null);
  const code = useSignal<{ code: Code; until: number; known: ReadonlySet<string> } | null>(null);
  const paired = useSignal("");
  const make = async (): Promise<void> => {
    failure.value = null;
    paired.value = "";
    try {
      const before = await client.get("/clients");
      const made = await client.post("/pair/codes", { body: { ...(name.value.trim() ? { name: name.value.trim() } : {}), ...(address.value.trim() ? { address: address.value.trim() } : {}) } });
      code.value = { code: made, until: Date.now() + made.expires_s * 1_000, known: new Set(before.results.map(keyOf)) };
    } catch (error) {
      failure.value = failureOf(error);
    }
  };
  useEffect(() => {
    const waiting = code.value;
    if (!waiting || paired.value) return undefined;
    const abort = new AbortController();
    const timer = setInterval(async () => {
      try {
        const now = await client.get("/clients", { signal: abort.signal });
        const fresh = now.results.find((row) => !waiting.known.has(keyOf(row)));
        if (!fresh || abort.signal.aborted) return;
        paired.value = fresh.name;
        clients.set(now);
      } catch (error) {
        if (!isAbort(error)) return; // asked again in a moment
      }
    }, LOOK_MS);
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [code.value, paired.value]);
  const shown = code.value;
  return (
    <DialogFrame
      title="Pair a device"
      onClose={onClose}
      acts={
        paired.value ? (
          <Button kind="primary" onClick={onClose}>
            Done
          </Button>
        ) : shown ? (
          <Button onClick={onClose}>Close</Button>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button kind="primary" onClick={() => void make()}>
              Create code
            </Button>
          </>
        )
      }
    >
      <div class="k-pair">
        {failure.value && <FailureNotice failure={failure.value} />}
        {paired.value ? (
          <p class="k-pair-done" role="status">
            <Icon name="circle-check" size={20} />
            <span>
              <strong>
                <bdi>{paired.value}</bdi>
              </strong>{" "}
              is paired. It has the same permissions in this vault as you; you can revoke it here.
            </span>
          </p>
        ) : shown ? (
          <CodeShown made={shown.code} until={shown.until} onAgain={() => void make()} />
        ) : (
          <>
            <p class="k-quiet">A code pairs one device and expires after two minutes. The device gets its own token for this vault.</p>
            <Field label="Name" hint="Shown in the list of devices. Leave it empty to use the device's own name.">
              {(attributes) => <input {...attributes} class="k-input" maxLength={40} autocomplete="off" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />}
            </Field>
            <Field label="Address of this server" hint="Phones need an https:// address: without encryption, others on the network could read along.">
              {(attributes) => <input {...attributes} class="k-input" inputMode="url" autocomplete="off" spellcheck={false} placeholder="This page's own address" value={address.value} onInput={(event) => (address.value = event.currentTarget.value)} />}
            </Field>
          </>
        )}
      </div>
    </DialogFrame>
  );
}

function keyOf(row: Clients["results"][number]): string {
  return `${row.name} ${row.paired}`;
}

function CodeShown({ made, until, onAgain }: { made: Code; until: number; onAgain: () => void }): JSX.Element {
  const host = useHost();
  const left = useSignal(until - Date.now());
  useEffect(() => {
    left.value = until - Date.now();
    const timer = setInterval(() => (left.value = until - Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [until]);
  if (left.value <= 0) {
    return (
      <div class="k-pair-over">
        <p>
          <strong>The code has expired.</strong> Codes are valid for two minutes.
        </p>
        <Button kind="primary" icon="refresh-cw" onClick={onAgain}>
          Create another
        </Button>
      </div>
    );
  }
  const isOwnLink = made.link.startsWith("obsidian://knapper?");
  return (
    <>
      <p class="k-pair-code" aria-label="Code">
        {made.code}
      </p>
      <p class="k-small k-quiet" role="timer">
        Works once, for {countdown(left.value)} more. Waiting for the device…
      </p>
      {made.qr ? <Qr rows={made.qr} /> : <p class="k-small k-quiet">There is no QR code for {made.address}: a phone is paired over https:// only. Type the code, or open the link on this computer.</p>}
      <div class="k-pair-acts">
        {isOwnLink && (
          <Button icon="external-link" href={made.link}>
            Open in Obsidian
          </Button>
        )}
        <Button icon="copy" onClick={() => void host.copy(made.link).then(() => host.floaters.toast({ text: "Link copied" }))}>
          Copy the link
        </Button>
      </div>
      <p class="k-small k-quiet">
        For the vault {made.vault}, at {made.address}.
      </p>
    </>
  );
}

/** The link as a QR code: dark on white in every theme, as cameras want it. */
function Qr({ rows }: { rows: readonly string[] }): JSX.Element {
  const { side, path } = qrPath(rows);
  return (
    <svg class="k-qr" viewBox={`0 0 ${side} ${side}`} role="img" aria-label="QR code of the link" shape-rendering="crispEdges">
      <rect width={side} height={side} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
