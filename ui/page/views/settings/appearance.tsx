/** How the page looks in this browser: its theme, and the language of dates. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { ago, dateLanguage, dateTime, Tabs, type IconName } from "../../../parts";
import type { App, Theme } from "../../app";

const THEMES: readonly { id: Theme; title: string; icon: IconName }[] = [
  { id: "system", title: "System", icon: "monitor" },
  { id: "light", title: "Light", icon: "sun" },
  { id: "dark", title: "Dark", icon: "moon" },
];
const LANGUAGES = ["en-GB", "en-US", "cs", "da", "de", "es", "fi", "fr", "it", "ja", "ko", "nb", "nl", "pl", "pt", "sv", "tr", "uk", "zh"];
const HOURS_MS = 3_600_000;

export function Appearance({ app }: { app: App }): JSX.Element {
  const id = useId();
  const language = dateLanguage.value;
  const yesterday = Date.now() - 26 * HOURS_MS;
  return (
    <section class="k-set-group" aria-label="This browser">
      <h2>This browser</h2>
      <div class="k-set">
        <div class="k-set-words">
          <div class="k-set-title">Theme</div>
          <p class="k-small k-quiet">Light, dark, or match the system.</p>
        </div>
        <div class="k-set-control">
          <Tabs tabs={THEMES} current={app.theme.value} label="Theme" onChange={(theme) => (app.theme.value = theme)} />
        </div>
        <p class="k-set-facts k-small">Default: system</p>
      </div>
      <div class="k-set">
        <div class="k-set-words">
          <div class="k-set-title">
            <label for={id}>Date format</label>
          </div>
          <p id={`${id}-about`} class="k-small k-quiet">
            For example “{ago(yesterday)}” and “{dateTime(yesterday)}”. The page itself is in English.
          </p>
        </div>
        <div class="k-set-control">
          <select id={id} aria-describedby={`${id}-about`} class="k-input k-select" value={language} onChange={(event) => (dateLanguage.value = event.currentTarget.value)}>
            <option value="">Browser default</option>
            {LANGUAGES.map((code) => (
              <option key={code} value={code}>
                {nameOf(code)}
              </option>
            ))}
          </select>
        </div>
        <p class="k-set-facts k-small">Default: the browser's language</p>
      </div>
      <p class="k-small k-quiet">Saved in this browser only.</p>
    </section>
  );
}

/** A language in its own name. */
function nameOf(code: string): string {
  const name = new Intl.DisplayNames([code], { type: "language" }).of(code) ?? code;
  return name.charAt(0).toLocaleUpperCase(code) + name.slice(1);
}
