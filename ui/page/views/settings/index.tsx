/** Settings: sections at the left, one of them in the middle. */

import type { JSX } from "preact";
import { Empty, Row, Tabs, type IconName } from "../../../parts";
import { href, type Theme } from "../../app";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";

interface Section {
  id: string;
  title: string;
  icon: IconName;
}

const SECTIONS: readonly Section[] = [
  { id: "appearance", title: "Appearance", icon: "palette" },
  { id: "models", title: "Models and keys", icon: "cpu" },
  { id: "agents", title: "Agents", icon: "bot" },
  { id: "web", title: "Web", icon: "globe" },
  { id: "limits", title: "Limits", icon: "gauge" },
  { id: "clients", title: "Clients and pairing", icon: "users" },
  { id: "index", title: "Index", icon: "database" },
];

function sectionOf({ route }: ViewProps): Section {
  return SECTIONS.find((section) => section.id === route.params["section"]) ?? (SECTIONS[0] as Section);
}

const THEMES: readonly { id: Theme; title: string; icon: IconName }[] = [
  { id: "system", title: "System", icon: "monitor" },
  { id: "light", title: "Light", icon: "sun" },
  { id: "dark", title: "Dark", icon: "moon" },
];

function Main(props: ViewProps): JSX.Element {
  const { app } = props;
  const section = sectionOf(props);
  return (
    <>
      <MainHead app={app} title={section.title} back={href("settings")} />
      {section.id === "appearance" ? (
        <div class="k-content">
          <div class="k-setting">
            <div>
              <h2>Theme</h2>
              <p class="k-quiet">Kept in this browser.</p>
            </div>
            <Tabs tabs={THEMES} current={app.theme.value} label="Theme" onChange={(id) => (app.theme.value = id)} />
          </div>
        </div>
      ) : (
        <Empty icon={section.icon} title="Not built yet">
          Until then, <code>knap config</code> shows and changes these settings.
        </Empty>
      )}
    </>
  );
}

export default defineView({
  create: () => ({}),
  List: (props) => (
    <ul class="k-rows">
      {SECTIONS.map((section) => (
        <li key={section.id}>
          <Row icon={section.icon} title={section.title} href={href(`settings/${section.id}`)} isSelected={sectionOf(props) === section} />
        </li>
      ))}
    </ul>
  ),
  Main,
  titleOf: (props) => sectionOf(props).title,
});
