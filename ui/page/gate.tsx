/** What somebody sees who isn't signed in. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button, Field, Icon } from "../parts";
import type { Session } from "./session";
import { Sign } from "./sign";

export function Gate({ session }: { session: Session }): JSX.Element {
  const code = useSignal("");
  const input = useRef<HTMLInputElement>(null);
  const problem = session.problem.value;
  useEffect(() => input.current?.focus(), []);
  return (
    <main class="k-gate">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void session.signIn(code.value).then(() => (code.value = ""));
        }}
      >
        <Sign size={48} />
        <h1>Sign in to Knapper</h1>
        <p class="k-quiet">
          Run <code>knap token page</code> and open the link it prints, or paste it here. The link works once, within an hour.
        </p>
        <Field label="Sign-in link or code">
          {(attributes) => (
            <input
              {...attributes}
              ref={input}
              class="k-input"
              type="password"
              autocomplete="off"
              spellcheck={false}
              required
              value={code.value}
              onInput={(event) => (code.value = event.currentTarget.value)}
            />
          )}
        </Field>
        {problem && (
          <p class="k-gate-problem" role="alert">
            <Icon name="circle-alert" />
            <span>
              {problem.message}
              {problem.hint && `: ${problem.hint}`}
            </span>
          </p>
        )}
        <Button kind="primary" type="submit">
          Sign in
        </Button>
      </form>
    </main>
  );
}
