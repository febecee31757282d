/** Which Knapper this is, where its files are, and whether it is well. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Client } from "../../client";
import { Button, Chip, IconButton } from "../basic";
import { count } from "../format";
import { useHost } from "../host";
import { resource } from "../resource";
import { SkeletonText } from "../rows";
import { missingParts, type IndexState } from "./indexing";
import { fieldText } from "./model";
import type { SettingsStore } from "./store";

export function makeAboutState(client: Client) {
  return { health: resource((abort) => client.get("/health", { signal: abort })) };
}

interface AboutProps {
  store: SettingsStore;
  state: ReturnType<typeof makeAboutState>;
  index: IndexState;
}

export function AboutSection({ store, state, index }: AboutProps): JSX.Element {
  const load = (): void => void Promise.all([state.health.load(), index.status.load(), store.settings.load()]);
  useEffect(load, []);
  const health = state.health.data.value;
  const status = index.status.data.value;
  const settings = store.settings.data.value;
  const restarts = settings?.settings.filter((row) => row.restart).length ?? 0;
  const missing = status ? missingParts(status) : [];
  if (!settings) return <SkeletonText lines={4} />;
  return (
    <section class="k-set-group" aria-label="Knapper">
      <div class="k-set-head">
        <h2>Knapper {health?.version}</h2>
        <Button size="small" icon="refresh-cw" onClick={load}>
          Check again
        </Button>
      </div>
      <dl class="k-facts">
        <dt>Server</dt>
        <dd>{health ? <Chip tone="added" icon="check">running</Chip> : <Chip tone="removed" icon="x">{state.health.failure.value?.message ?? "asking…"}</Chip>}</dd>
        <dt>Index</dt>
        <dd>{!status ? "…" : missing.length ? <Chip tone="warning" icon="triangle-alert">{missing.length > 1 ? `${missing.length} problems` : status.problems ? `${count(status.problems, "file")} with problems` : "1 problem"}</Chip> : <Chip tone="added" icon="check">complete</Chip>}</dd>
        <dt>Settings</dt>
        <dd>{restarts ? <Chip tone="warning" icon="rotate-cw">{`${restarts} waiting for a restart`}</Chip> : <Chip tone="added" icon="check">all applied</Chip>}</dd>
        <dt>Configuration file</dt>
        <dd>
          <Place path={settings.config_file} />
        </dd>
        <dt>State folder</dt>
        <dd>
          <Place path={fieldText(store.row("state_dir")?.value ?? "")} />
        </dd>
      </dl>
      <p class="k-small k-quiet">
        <code>knap doctor</code> checks more: the installation, every database, and what others can reach.
      </p>
    </section>
  );
}

/** A file or folder by its name; the whole path on hover, and copied by the button. */
function Place({ path }: { path: string }): JSX.Element {
  const host = useHost();
  const name = path.split(/[/\\]/).filter(Boolean).slice(-2).join("/");
  return (
    <span class="k-place">
      <code class="k-cut" title={path}>
        …/{name}
      </code>
      <IconButton icon="copy" size="small" label={`Copy the path of ${name}`} onClick={() => void host.copy(path).then(() => host.floaters.toast({ text: "Path copied" }))} />
    </span>
  );
}
