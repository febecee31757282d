/** The contract between the shell and its views. */

import type { ComponentType, JSX } from "preact";
import type { IconName, PaletteProvider } from "../parts";
import type { App } from "./app";
import type { Route } from "./router";

/** What the shell knows of a view before it is loaded; all of them stand in `views.ts`. */
export interface ViewEntry {
  id: string;
  title: string;
  icon: IconName;
  /** Patterns of its addresses below `/app/`, such as `notes` and `notes/*path`; the first is where the rail leads. */
  routes: readonly string[];
  /** After `g`, such as `s`. */
  key: string;
  /** On a phone, whose bar has no room for all, the view from which this one is reached. */
  within?: string;
  load: () => Promise<{ default: View }>;
}

export interface ViewProps<S = unknown> {
  app: App;
  state: S;
  route: Route;
}

/** A view, the default export of `views/NAME/index.tsx`, made by `defineView`. */
export interface View<S = unknown> {
  /** Makes its state: signals, resources, registered keys. Called once, when it is first opened; lives as long as the page. */
  create: (app: App) => S;
  /** The folding list at the left; a view without one has the whole room. */
  List?: ComponentType<ViewProps<S>>;
  /** Buttons in the list's head, beside the view's title. */
  ListActions?: ComponentType<ViewProps<S>>;
  Main: ComponentType<ViewProps<S>>;
  /** Whether the main part shows something of its own at this address; on a phone the list is shown where it doesn't. */
  isItem?: (route: Route) => boolean;
  /** What it is about, for the window's title, such as a note's name. */
  titleOf?: (props: ViewProps<S>) => string;
  /** Offered in the palette from everywhere. */
  palette?: (app: App, state: S) => readonly PaletteProvider[];
}

/** Declare a view; its state's type is inferred from `create`. */
export function defineView<S>(view: View<S>): View {
  return view as unknown as View;
}

/** What the pane at the right shows: whatever was clicked. Any view may fill it by `app.showPane`. */
export interface PaneContent {
  /** Two of the same key are the same content: opening it again leaves it as it is. */
  key: string;
  title: string;
  icon: IconName;
  /** Where the same is shown in full. */
  href?: string;
  body: () => JSX.Element;
}
