/** Which model answers, its key, and a question that shows whether it does. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId } from "preact/hooks";
import { failureOf, isAbort, type Client, type Failure, type Reply } from "../../client";
import { Button, Chip, Field, Icon } from "../basic";
import { cost, duration, sentence, tokens } from "../format";
import { useHost } from "../host";
import { resource } from "../resource";
import { FailureNotice, Notice, SkeletonText, Told } from "../rows";
import { failureTitle, keyPlace, PROVIDERS, readModel, sourceOf, trialHint, whyFixed, writeModel, type ModelParts } from "./model";
import { SecretInput } from "./row";
import type { SettingsStore } from "./store";

type Trial = Reply<"post", "/models/trial">;
type Offered = Reply<"get", "/models/offered">;
type Keys = Reply<"get", "/models/keys">;

/** What the section of models loads beside the settings. */
export function makeModelState(client: Client) {
  return {
    keys: resource((abort): Promise<Keys> => client.get("/models/keys", { signal: abort })),
    offered: resource((abort, provider: string): Promise<Offered> => client.get("/models/offered", { query: { provider: provider as "openai" }, signal: abort })),
    trial: resource((abort, model: string): Promise<Trial> => client.post("/models/trial", { body: model ? { model } : {}, signal: abort })),
  };
}

export type ModelState = ReturnType<typeof makeModelState>;

interface ModelProps {
  store: SettingsStore;
  state: ModelState;
  /** Told when a model was chosen, as the chat shows which one answers. */
  onChosen?: (() => void) | undefined;
}

export function ModelSection({ store, state, onChosen }: ModelProps): JSX.Element {
  useEffect(() => {
    if (!store.settings.data.peek()) void store.settings.load();
    void state.keys.load();
  }, []);
  const row = store.row("model.name");
  if (!row) return <SkeletonText lines={4} />;
  const stored = readModel(String(row.value ?? ""), String(store.row("model.base_url")?.value ?? ""));
  const fixed = whyFixed(row);
  return (
    <>
      <section class="k-set-group" aria-label="Model">
        <h2>Model</h2>
        {fixed ? (
          <div class="k-model">
            <p>
              <strong>{String(row.value) || "None"}</strong>
            </p>
            <p class="k-small k-quiet">
              {sourceOf(row).text}. {fixed}.
            </p>
            <TrialBox state={state} model="" />
          </div>
        ) : (
          <ModelForm key={String(row.value)} store={store} state={state} stored={stored} onChosen={onChosen} />
        )}
      </section>
      <KeyList store={store} state={state} />
    </>
  );
}

interface FormProps extends ModelProps {
  stored: ModelParts;
}

function ModelForm({ store, state, stored, onChosen }: FormProps): JSX.Element {
  const parts = useSignal<ModelParts>(stored.provider ? stored : { provider: "ollama", name: "", address: "http://localhost:1234/v1" });
  const problem = useSignal<{ problem: string; field: "name" | "address" } | null>(null);
  const list = useId();
  const { provider, name, address } = parts.value;
  const set = (next: Partial<ModelParts>): void => {
    parts.value = { ...parts.value, ...next };
    problem.value = null;
    store.forget(["model.name"]);
  };
  const place = keyPlace(parts.value);
  const keyRow = state.keys.data.value?.results.find((one) => one.provider === place?.provider);
  useEffect(() => {
    if (provider && provider !== "compatible") void state.offered.load(provider);
  }, [provider, keyRow?.place]);
  const written = writeModel(parts.value);
  const isNew = !("name" in written) || written.name !== String(store.row("model.name")?.value ?? "");
  const standing = store.standing.value.get("model.name");
  const failure = standing?.state === "failed" ? standing.failure : null;
  const use = async (event: Event): Promise<void> => {
    event.preventDefault();
    if ("problem" in written) {
      problem.value = written;
      return;
    }
    if (isNew && !(await store.save("model.name", written.name))) return;
    onChosen?.();
    void state.trial.load("");
  };
  const about = PROVIDERS.find((one) => one.id === provider);
  const offered = provider === "compatible" ? [] : (state.offered.data.value?.models ?? []);
  return (
    <form class="k-model" onSubmit={(event) => void use(event)}>
      <div class="k-model-fields">
        <Field label="Provider" hint={about?.detail}>
          {(attributes) => (
            <select {...attributes} class="k-input k-select" value={provider} onChange={(event) => set({ provider: event.currentTarget.value, name: "" })}>
              {PROVIDERS.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.title}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Model" problem={problem.value?.field === "name" ? problem.value.problem : ""} hint={offeredText(provider, state) || `For example ${about?.example ?? ""}`}>
          {(attributes) => (
            <input {...attributes} class="k-input" list={list} autocomplete="off" spellcheck={false} value={name} placeholder={about?.example ?? ""} onInput={(event) => set({ name: event.currentTarget.value })} />
          )}
        </Field>
        <datalist id={list}>
          {offered.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        {provider === "compatible" && (
          <Field label="Address" problem={problem.value?.field === "address" ? problem.value.problem : ""} hint="For example http://localhost:1234/v1">
            {(attributes) => <input {...attributes} class="k-input" inputMode="url" autocomplete="off" spellcheck={false} value={address} onInput={(event) => set({ address: event.currentTarget.value })} />}
          </Field>
        )}
      </div>
      {place && <p class="k-small k-quiet">{keyRow && keyRow.place !== "none" ? "Its key is set." : provider === "compatible" ? "If the server needs a key, add it below." : "It needs a key: add it below first."}</p>}
      {failure && <FailureNotice failure={failure} />}
      <div class="k-model-acts">
        <Button kind="primary" type="submit" isDisabled={standing?.state === "saving" || state.trial.isLoading.value}>
          {isNew ? "Use and test" : "Test"}
        </Button>
        {stored.provider && (
          <Button kind="quiet" onClick={() => void store.save("model.name", null)}>
            Use no model
          </Button>
        )}
      </div>
      <TrialOutcome state={state} />
    </form>
  );
}

function offeredText(provider: string, state: ModelState): string {
  if (provider === "compatible") return "";
  if (state.offered.isLoading.value) return "Loading models…";
  const found = state.offered.data.value;
  if (!found || found.state === "no_key") return ""; // said of the key itself
  if (found.state === "unreachable" && provider === "ollama") return "Ollama doesn't answer on this computer. Start it, or choose another provider.";
  if (found.state !== "ok") return sentence(found.text);
  return found.models.length ? `${found.models.length} available` : "";
}

function TrialBox({ state, model }: { state: ModelState; model: string }): JSX.Element {
  return (
    <>
      <div class="k-model-acts">
        <Button kind="primary" isDisabled={state.trial.isLoading.value} onClick={() => void state.trial.load(model)}>
          Test
        </Button>
      </div>
      <TrialOutcome state={state} />
    </>
  );
}

/** What came of the question: the answer with its time and cost, or why there is none. */
function TrialOutcome({ state }: { state: ModelState }): JSX.Element {
  const { trial } = state;
  const found = trial.data.value;
  const hint = found?.problem ? trialHint(found.problem) : "";
  return (
    <div class="k-trial" role="status">
      {trial.isLoading.value ? (
        <p class="k-quiet">Waiting for a test answer…</p>
      ) : trial.failure.value ? (
        <FailureNotice failure={trial.failure.value} />
      ) : found?.problem ? (
        <Notice tone="removed">
          <strong>{failureTitle(found.problem.code)}</strong>
          <div>
            <Told text={found.problem.error} />
          </div>
          {hint && (
            <div class="k-quiet">
              <Told text={hint} />
            </div>
          )}
        </Notice>
      ) : (
        found && (
          <p class="k-trial-good">
            <Icon name="circle-check" />
            <span>
              <strong>{found.model}</strong> answered {found.text ? <q>{found.text}</q> : "with no text"}
            </span>
            <span class="k-quiet">
              {duration(found.seconds * 1_000)} · {tokens(found.spent.total_tokens)} tokens · {found.spent.cost_usd === null ? "price unknown" : cost(found.spent.cost_usd)}
            </span>
          </p>
        )
      )}
    </div>
  );
}

const PLACES = { settings: "In the configuration file", keyring: "In the keyring", none: "Not set" } as const;

/** The keys by provider: kept in the system's keyring, or in the file where there is none. */
function KeyList({ store, state }: { store: SettingsStore; state: ModelState }): JSX.Element {
  const keys = state.keys.data.value;
  return (
    <section class="k-set-group" aria-label="Keys">
      <h2>Keys</h2>
      <p class="k-small k-quiet">
        {keys && !keys.has_keyring
          ? "This computer has no working keyring, so keys are stored in the configuration file, which only you can read."
          : "Stored in this computer's keyring, sent only to their provider, and never shown again."}
      </p>
      {!keys ? state.keys.failure.value ? <FailureNotice failure={state.keys.failure.value} /> : <SkeletonText lines={4} /> : keys.results.map((row) => <KeyRow key={row.provider} store={store} state={state} row={row} hasKeyring={keys.has_keyring} />)}
    </section>
  );
}

interface KeyRowProps {
  store: SettingsStore;
  state: ModelState;
  row: Keys["results"][number];
  hasKeyring: boolean;
}

function KeyRow({ store, state, row, hasKeyring }: KeyRowProps): JSX.Element {
  const id = useId();
  const { client, floaters } = useHost();
  const failure = useSignal<Failure | null>(null);
  const title = PROVIDERS.find((one) => one.id === row.provider)?.title ?? row.provider;
  const setting = PROVIDERS.some((one) => one.id === row.provider) ? `model.${row.provider}_api_key` : "";
  const stored = setting ? store.row(setting) : undefined;
  const isVariable = row.place === "settings" && stored?.is_set === true && sourceOf(stored).kind === "variable";
  const keep = async (key: string | null): Promise<void> => {
    failure.value = null;
    try {
      if (hasKeyring && row.place !== "settings") await client.put("/models/keys", { body: { provider: row.provider, ...(key === null ? {} : { key }) } });
      else if (setting) await keepInFile(store, setting, key);
    } catch (error) {
      if (!isAbort(error)) failure.value = failureOf(error);
    }
    void state.keys.load();
  };
  const remove = async (): Promise<void> => {
    if (await floaters.confirm({ title: `Remove the key of ${title}?`, text: "Its models won't answer until you add another key.", act: "Remove", isDanger: true })) void keep(null);
  };
  const canKeep = hasKeyring || setting !== "";
  return (
    <div class="k-set" data-wide="">
      <div class="k-set-words">
        <div class="k-set-title">
          <label for={id}>{title}</label>
        </div>
      </div>
      <div class="k-set-control">
        <SecretInput
          attributes={{ id }}
          label={`Key of ${title}`}
          state={isVariable && stored ? sourceOf(stored).text : PLACES[row.place]}
          isSet={row.place !== "none"}
          isFixed={isVariable || !canKeep}
          act="Save key"
          onSave={(key) => void keep(key)}
          onRemove={row.place !== "none" && !isVariable && canKeep ? () => void remove() : undefined}
        />
      </div>
      {failure.value && (
        <div class="k-set-foot">
          <p class="k-set-problem" role="alert">
            <Icon name="circle-alert" />
            <span>
              {failure.value.message}. <span class="k-quiet">{failure.value.hint}</span>
            </span>
          </p>
        </div>
      )}
      {!canKeep && (
        <div class="k-set-foot">
          <p class="k-set-facts k-small">
            <Chip tone="warning">Needs a keyring</Chip>
          </p>
        </div>
      )}
    </div>
  );
}

async function keepInFile(store: SettingsStore, setting: string, key: string | null): Promise<void> {
  if (await store.save(setting, key)) return;
  const standing = store.standing.value.get(setting);
  if (standing?.state === "failed") throw standing.failure;
}
