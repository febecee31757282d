/* Shows a page of its own where the server can't be reached. It keeps that page alone: no note, no answer, no key. */

const CACHE = "knapper-offline-VERSION";
const PAGE = "/page/offline.html";
const FILES = [PAGE, "/page/offline.css", "/page/offline.js", "/page/icon.svg"];

self.addEventListener("install", (event) => {
  const fresh = FILES.map((path) => new Request(path, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(fresh)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const tidy = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith("knapper-offline-") && name !== CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(tidy());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  const isPage = request.mode === "navigate" && (pathname === "/" || pathname.startsWith("/app/"));
  const kept = isPage ? PAGE : FILES.includes(pathname) ? pathname : "";
  // Everything else is none of its business: calls of the API go to the server as if there were no worker.
  if (kept) event.respondWith(fetch(request).catch(async () => (await caches.match(kept, { cacheName: CACHE })) ?? Response.error()));
});
