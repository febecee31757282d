/** Who may call the server: paired devices, programs with their rights, and who only proposes because of what was read. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useMemo } from "preact/hooks";
import { failureOf, type Client, type Reply } from "../../client";
import { Button, Chip, Icon, type IconName } from "../basic";
import { ago, dateTime } from "../format";
import { useHost, type Host } from "../host";
import { resource } from "../resource";
import { Empty, FailureNotice, Notice, SkeletonRows } from "../rows";
import { callsServer, kindName, RIGHTS, rightsLines, tokenText, type ProgramRow } from "./model";
import { openPairing } from "./pairing";
import { SettingField } from "./row";
import { rightsOfProgram, SettingsStore } from "./store";

type Clients = Reply<"get", "/clients">;
type Device = Clients["results"][number];
type Restriction = Reply<"get", "/trust">["results"][number];

const AT_MOST = 200;

export function makeClientState(client: Client) {
  return {
    clients: resource((abort): Promise<Clients> => client.get("/clients", { signal: abort })),
    trust: resource((abort) => client.get("/trust", { query: { limit: AT_MOST }, signal: abort })),
  };
}

export type ClientState = ReturnType<typeof makeClientState>;

export function ClientSection({ state }: { state: ClientState }): JSX.Element {
  const { clients, trust } = state;
  useEffect(() => {
    void clients.load();
    void trust.load();
  }, []);
  const found = clients.data.value;
  if (!found) return clients.failure.value ? <FailureNotice failure={clients.failure.value} /> : <SkeletonRows />;
  return (
    <>
      <Devices state={state} devices={found.results} canPair={found.programs.length > 0} />
      <Restricted state={state} />
      {found.programs.length > 0 && <Programs rows={found.programs} />}
    </>
  );
}

function Devices({ state, devices, canPair }: { state: ClientState; devices: readonly Device[]; canPair: boolean }): JSX.Element {
  const host = useHost();
  const pair = (): void => void openPairing(host, state.clients);
  return (
    <section class="k-set-group" aria-label="Paired devices">
      <div class="k-set-head">
        <h2>Paired devices</h2>
        {canPair && devices.length > 0 && (
          <Button icon="qr-code" onClick={pair}>
            Pair a device
          </Button>
        )}
      </div>
      {devices.length ? (
        <ul class="k-clients" aria-label="Paired devices">
          {devices.map((device) => (
            <DeviceRow key={device.name} device={device} onRevoke={() => void revoke(host, state, device)} />
          ))}
        </ul>
      ) : (
        <Empty
          icon="smartphone"
          title="No paired devices"
          acts={
            canPair && (
              <Button kind="primary" icon="qr-code" onClick={pair}>
                Pair a device
              </Button>
            )
          }
        >
          Obsidian on this computer or a phone gets a token of its own here, which you can revoke at any time.
        </Empty>
      )}
    </section>
  );
}

function DeviceRow({ device, onRevoke }: { device: Device; onRevoke: () => void }): JSX.Element {
  return (
    <li class="k-client">
      <Icon name="smartphone" size={20} />
      <div class="k-client-words">
        <div class="k-client-name">
          <bdi>{device.name}</bdi>
          {device.device && <span class="k-quiet k-small k-cut">{device.device}</span>}
        </div>
        <p class="k-small k-quiet">
          You, in the vault {device.vault} · paired <Moment at={device.paired} /> · {device.last_used ? <>seen <Moment at={device.last_used} /></> : "never connected"}
        </p>
      </div>
      <Button kind="danger" size="small" label={`Revoke ${device.name}`} onClick={onRevoke}>
        Revoke
      </Button>
    </li>
  );
}

function Moment({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={dateTime(at)}>
      {ago(at)}
    </time>
  );
}

async function revoke(host: Host, state: ClientState, device: Device): Promise<void> {
  const isSure = await host.floaters.confirm({
    title: `Revoke ${device.name}?`,
    text: "Its token stops working at once. Changes it made stay and can be undone in the journal. To use the device again, pair it again.",
    act: "Revoke",
    isDanger: true,
  });
  if (!isSure) return;
  try {
    await host.client.delete("/clients/{name}", { path: { name: device.name } });
    host.floaters.toast({ text: `${device.name} was revoked`, tone: "added" });
  } catch (error) {
    const failure = failureOf(error);
    host.floaters.toast({ text: failure.message, tone: "removed", ...(failure.hint ? { hint: failure.hint } : {}) });
  }
  await state.clients.load();
}

const ICONS: Readonly<Record<ProgramRow["kind"], IconName>> = { person: "user", mcp: "plug", http: "globe", agent: "bot", script: "terminal", named: "plug" };

function Programs({ rows }: { rows: readonly ProgramRow[] }): JSX.Element {
  return (
    <section class="k-set-group" aria-label="Programs and permissions">
      <h2>Programs and permissions</h2>
      <p class="k-small k-quiet">Changes are saved in the configuration file and take effect after a restart. Your own permissions can only be changed in that file.</p>
      <ul class="k-clients" aria-label="Programs and permissions">
        {rows.map((row) => (
          <Program key={row.name} row={row} />
        ))}
      </ul>
    </section>
  );
}

function Program({ row }: { row: ProgramRow }): JSX.Element {
  const isOpen = useSignal(false);
  const id = useId();
  return (
    <li class="k-client">
      <Icon name={ICONS[row.kind]} size={20} />
      <div class="k-client-words">
        <div class="k-client-name">
          <bdi>{row.name}</bdi>
          <span class="k-quiet k-small">{kindName(row)}</span>
          {row.is_configured && <Chip>configured</Chip>}
        </div>
        {rightsLines(row).map((line) => (
          <p class="k-small" key={line}>
            {line}
          </p>
        ))}
        <p class="k-small k-quiet">
          {tokenText(row)}
          {callsServer(row) && <> · {row.last_used ? <>called <Moment at={row.last_used} /></> : "no calls since the server started"}</>}
        </p>
        {isOpen.value && <Rights id={id} name={row.name} />}
      </div>
      {row.kind !== "person" && (
        <button
          type="button"
          class="k-button"
          data-size="small"
          aria-label={`${isOpen.value ? "Close" : "Edit"} permissions of ${row.name}`}
          aria-expanded={isOpen.value}
          aria-controls={isOpen.value ? id : undefined}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          {isOpen.value ? "Close" : "Edit"}
        </button>
      )}
    </li>
  );
}

/** A program's rights, each as a setting: saved when its field is left. */
function Rights({ id, name }: { id: string; name: string }): JSX.Element {
  const { client } = useHost();
  const store = useMemo(() => new SettingsStore(rightsOfProgram(client, name)), [name]);
  useEffect(() => void store.settings.load(), [store]);
  const answer = store.settings.data.value;
  const failure = store.settings.failure.value;
  const rows = new Map(answer?.settings.map((row) => [row.name, row]));
  return (
    <div id={id} class="k-client-rights" role="group" aria-label={`Permissions of ${name}`}>
      {failure && <FailureNotice failure={failure} />}
      {!answer && !failure && <SkeletonRows count={3} />}
      {answer?.is_writable === false && (
        <Notice tone="warning">
          The configuration file <code>{answer.config_file}</code> is read-only for the server, so nothing can be changed here. Make it writable, or edit it at its source.
        </Notice>
      )}
      {Object.keys(RIGHTS).map((right) => {
        const row = rows.get(right);
        return row && <SettingField key={right} store={store} row={row} />;
      })}
    </div>
  );
}

/** Who only proposes because of what was read, and trusting them again. */
function Restricted({ state }: { state: ClientState }): JSX.Element | null {
  const host = useHost();
  const busy = useSignal(false);
  const rows = state.trust.data.value?.results ?? [];
  const trust = async (body: { all: true } | { client: string; run?: string }): Promise<void> => {
    busy.value = true;
    try {
      await host.client.post("/trust", { body });
    } catch (error) {
      const failure = failureOf(error);
      host.floaters.toast({ text: failure.message, tone: "removed", ...(failure.hint ? { hint: failure.hint } : {}) });
    }
    busy.value = false;
    await state.trust.load();
  };
  if (state.trust.failure.value && !rows.length) return <FailureNotice failure={state.trust.failure.value} />;
  return (
    <section class="k-set-group" aria-label="Limited to proposals">
      <div class="k-set-head">
        <h2>Limited to proposals</h2>
        {rows.length > 1 && (
          <Button isDisabled={busy.value} onClick={() => void trust({ all: true })}>
            Trust all
          </Button>
        )}
      </div>
      <p class="k-small k-quiet">
        {rows.length
          ? "These read untrusted content. Their changes wait for your review until you trust them again or the time runs out."
          : "A client that reads untrusted content can only propose changes for a while. No client is limited now."}
      </p>
      {rows.length > 0 && (
        <ul class="k-clients" aria-label="Limited to proposals">
          {rows.map((row) => (
            <RestrictedRow key={`${row.client} ${row.run}`} row={row} isBusy={busy.value} onTrust={() => void trust({ client: row.client, ...(row.run ? { run: row.run } : {}) })} />
          ))}
        </ul>
      )}
    </section>
  );
}

function RestrictedRow({ row, isBusy, onTrust }: { row: Restriction; isBusy: boolean; onTrust: () => void }): JSX.Element {
  return (
    <li class="k-client">
      <Icon name="shield-alert" size={20} />
      <div class="k-client-words">
        <div class="k-client-name">
          <bdi>{row.client}</bdi>
          {row.run && <span class="k-quiet k-small k-cut">{row.run}</span>}
        </div>
        <p class="k-small k-quiet">
          {row.inherited ? "Started by a client that had read " : "Read "}
          <bdi>{row.source}</bdi> <Moment at={row.since} />
          {row.until && <>, until {dateTime(row.until)}</>}
        </p>
      </div>
      <Button size="small" isDisabled={isBusy} label={`Trust again: ${row.client}${row.run ? `, ${row.run}` : ""}`} onClick={onTrust}>
        Trust again
      </Button>
    </li>
  );
}
