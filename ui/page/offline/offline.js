/* Ask the server every few seconds whether it is back; then load what was asked for. */

const EVERY_MS = 4_000;
const tried = document.getElementById("tried");
let isAsking = false;

async function ask() {
  if (isAsking) return;
  isAsking = true;
  try {
    const answer = await fetch("/health", { cache: "no-store" });
    if (answer.ok) location.reload();
  } catch {
    const time = new Date().toLocaleTimeString(undefined, { timeStyle: "medium" });
    if (tried) tried.textContent = `Tried at ${time}. Trying again every few seconds…`;
  } finally {
    isAsking = false;
  }
}

document.getElementById("again")?.addEventListener("click", ask);
addEventListener("online", ask);
setInterval(ask, EVERY_MS);
