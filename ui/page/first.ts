/** The first steps of the app's vault, which several views show. */

import { FirstSteps } from "../parts/settings/first";
import type { App } from "./app";
import * as keep from "./keep";

const states = new WeakMap<App, FirstSteps>();

/** What a first visit needs to know; made once. */
export function firstStepsOf(app: App): FirstSteps {
  const known = states.get(app);
  if (known) return known;
  const steps = new FirstSteps(app.client, keep);
  states.set(app, steps);
  return steps;
}
