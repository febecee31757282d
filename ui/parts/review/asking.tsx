/** Questions before something is decided. */

import { FormDialog, type Floaters } from "../floating";

/** Ask for a reason, which may be left empty; null where somebody thought better of it. */
export async function askReason(floaters: Floaters, title: string, act = "Reject"): Promise<string | null> {
  let reason: string | null = null;
  let text = "";
  await floaters.dialog((close) => {
    const done = () => {
      reason = text.trim();
      close();
    };
    return (
      <FormDialog title={title} act={act} kind="danger" onClose={close} onDone={done}>
        <div class="k-field">
          <label for="k-reason">Reason (optional)</label>
          <input id="k-reason" class="k-input" maxLength={2_000} onInput={(event) => (text = event.currentTarget.value)} />
        </div>
      </FormDialog>
    );
  });
  return reason;
}
