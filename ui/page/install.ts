/** What makes the page installable as an app, and shows a page of its own where the server can't be reached. */

const WORKER = "/page/worker.js";

interface ScriptPolicies {
  createPolicy(name: string, rules: { createScriptURL: () => string }): { createScriptURL(input: string): unknown };
}

/** Name the manifest and start the worker, late: neither is needed to use the page. */
export function install(): void {
  for (const [rel, href] of [["manifest", "/page/knapper.webmanifest"], ["apple-touch-icon", "/page/icon-192.png"]] as const) {
    const link = document.createElement("link");
    link.rel = rel;
    link.href = href;
    document.head.append(link);
  }
  void startWorker().catch(() => undefined); // without it there is no page offline, and nothing else is missing
}

async function startWorker(): Promise<void> {
  if (!("serviceWorker" in navigator)) return; // such as over http from another computer
  await navigator.serviceWorker.register(workerAddress() as string, { scope: "/" });
}

/** The one address that the content policy lets the page make a script of; whatever is asked for, it is this one. */
function workerAddress(): unknown {
  const policies = (globalThis as { trustedTypes?: ScriptPolicies }).trustedTypes;
  return policies ? policies.createPolicy("knapper-worker", { createScriptURL: () => WORKER }).createScriptURL("") : WORKER;
}
