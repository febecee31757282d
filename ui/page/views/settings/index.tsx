/** Settings: sections at the left, one of them in the middle. What the plugin has too is in `parts/settings`. */

import type { JSX } from "preact";
import { Row, SkeletonRows, type IconName } from "../../../parts";
import { AboutSection, ClientSection, IndexSection, makeAboutState, makeClientState, makeModelState, makeUsageState, ModelSection, SettingGroups, settingsOfServer, SettingsStore, UsageSummary } from "../../../parts/settings";
import { firstStepsOf, href, type App } from "../../app";
import { MainHead } from "../../shell";
import { defineView, type ViewProps } from "../../view";
import { Appearance } from "./appearance";

interface Section {
  id: string;
  title: string;
  icon: IconName;
  detail: string;
}

const SECTIONS: readonly Section[] = [
  { id: "models", title: "Models", icon: "cpu", detail: "Provider, API keys, test" },
  { id: "agents", title: "Agents", icon: "bot", detail: "Context and permissions" },
  { id: "web", title: "Web", icon: "globe", detail: "Web search and its limits" },
  { id: "limits", title: "Limits and usage", icon: "gauge", detail: "Usage and spending limits" },
  { id: "index", title: "Search and index", icon: "database", detail: "Index status, rebuild" },
  { id: "clients", title: "Clients", icon: "users", detail: "Devices, pairing, permissions" },
  { id: "appearance", title: "Appearance", icon: "palette", detail: "Theme, date format" },
  { id: "about", title: "About", icon: "info", detail: "Version, files, health" },
];

function create(app: App) {
  return {
    store: new SettingsStore(settingsOfServer(app.client)),
    models: makeModelState(app.client),
    clients: makeClientState(app.client),
    usage: makeUsageState(app.client),
    about: makeAboutState(app.client),
    index: firstStepsOf(app).index,
  };
}

type State = ReturnType<typeof create>;

function sectionOf(route: ViewProps["route"]): Section {
  return SECTIONS.find((section) => section.id === route.params["section"]) ?? (SECTIONS[0] as Section);
}

function Main({ app, state, route }: ViewProps<State>): JSX.Element {
  const section = sectionOf(route);
  return (
    <>
      <MainHead app={app} title={section.title} back={href("settings")} />
      <div class="k-main-scroll">
        <div class="k-content k-settings" key={section.id}>
          <Body app={app} state={state} id={section.id} />
        </div>
      </div>
    </>
  );
}

function Body({ app, state, id }: { app: App; state: State; id: string }): JSX.Element {
  const groups = <SettingGroups store={state.store} section={id} />;
  switch (id) {
    case "appearance":
      return <Appearance app={app} />;
    case "models":
      return (
        <>
          <ModelSection store={state.store} state={state.models} onChosen={() => void firstStepsOf(app).load()} />
          {groups}
        </>
      );
    case "limits":
      return (
        <>
          <UsageSummary state={state.usage} />
          {groups}
        </>
      );
    case "index":
      return (
        <>
          <IndexSection state={state.index} />
          {groups}
        </>
      );
    case "clients":
      return (
        <>
          <ClientSection state={state.clients} />
          {groups}
        </>
      );
    case "about":
      return (
        <>
          <AboutSection store={state.store} state={state.about} index={state.index} />
          {groups}
        </>
      );
    default:
      return groups;
  }
}

function List({ app, route }: ViewProps<State>): JSX.Element {
  if (!app) return <SkeletonRows />;
  const current = sectionOf(route);
  const isChosen = !app.isNarrow.value || route.params["section"] !== undefined;
  return (
    <ul class="k-rows" aria-label="Sections">
      {SECTIONS.map((section) => (
        <li key={section.id}>
          <Row lines={2} icon={section.icon} title={section.title} detail={section.detail} href={href(`settings/${section.id}`)} isSelected={isChosen && current === section} />
        </li>
      ))}
    </ul>
  );
}

export default defineView<State>({
  create,
  List,
  Main,
  titleOf: ({ route }) => sectionOf(route).title,
  palette: (app) => [
    {
      id: "settings",
      title: "Settings",
      limit: 4,
      find: (query) =>
        SECTIONS.filter((section) => query && `${section.title} ${section.detail} settings`.toLowerCase().includes(query.toLowerCase())).map((section) => ({
          id: `settings ${section.id}`,
          title: `Settings: ${section.title}`,
          icon: section.icon,
          run: () => app.go(href(`settings/${section.id}`)),
        })),
    },
  ],
});
