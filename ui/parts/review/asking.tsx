/** Questions before something is decided. */

import { Button } from "../basic";
import { DialogFrame, type Floaters } from "../floating";

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
      <DialogFrame
        title={title}
        onClose={close}
        acts={
          <>
            <Button onClick={close}>Cancel</Button>
            <Button kind="danger" onClick={done}>
              {act}
            </Button>
          </>
        }
      >
        <form
          class="k-field"
          onSubmit={(event) => {
            event.preventDefault();
            done();
          }}
        >
          <label for="k-reason">Why (may be left empty)</label>
          <input id="k-reason" class="k-input" maxLength={2_000} onInput={(event) => (text = event.currentTarget.value)} />
        </form>
      </DialogFrame>
    );
  });
  return reason;
}
