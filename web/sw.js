// Works offline after loading: serves this page's own files from a copy that was checked against the hashes below, and
// nothing else. `python web/bundle.py --stamp` writes the hashes.

const FILES = {
  "app.js": "teYxVXSKYi6T0SVjFN+Zo4yy5+JuC1EvcxOVuXCqqoY=",
  "app.webmanifest": "Yn/BrYrY5Vgvc9Q7fetLGNBkXUmc7gvpxp6GbTl+y/g=",
  "client/answering.js": "IkDzUwo3UThMenmlTzT1fQ6PXhuigG4cbw/kcBMquxw=",
  "client/bytes.js": "ige51szXbiCc8/+yBV4YbxjloKm8DKa6RipZwKA+hAo=",
  "client/coins.js": "E7YS0RCfYRPC9FXXDmc7oIQZuXre/ZWNus+4qzm2ltM=",
  "client/decimals.js": "+8ZNUGIsNNwONscOaLTE53tlXbUvD0JRlle3adNjWq0=",
  "client/diary.js": "FSmXKcyaeYuwm0kq+pMvfcXcTaiA6LfuGb8PNDL5uUM=",
  "client/errors.js": "ip+vdEZCRWBPGfrLDE24JRmTgx2llYUfNkn5CRsM3QY=",
  "client/json.js": "+vYGFt6CXY4NMoQ93MmKlFr7SBcBCD9bh5RUfFyun9k=",
  "client/messages.js": "o5GHTF0sunKWm3E5KV0XJntrOEqR9paYe3fWj8Q/pvM=",
  "client/network.js": "BpmEi1nnl2Pa2N28j2mNeK7O5eb/9fxghdtI5pHFW8o=",
  "client/recommending.js": "syjzANHmeM+WOwiDSG/Y6Zv7GOIVDtN0OxZAjnQh3EE=",
  "client/sketches.js": "HDrI+0XlyYuASBNw5nxKnn21RXAQ3hxvI27yrunbCVY=",
  "client/stream.js": "B75duwj5gaL9AuRYvVu62TFzOMMju+wvlsSfT4N462M=",
  "icon.svg": "COilZcGHNMxWL2sds/vJgL40oYdXJuNnRocgdQ0lG5Q=",
  "index.html": "OTqqqf5g6CwvInNWBelRDuLXcOKxIZtHtL0Z+4A3yhM=",
  "page/dom.js": "b6mLR+sp9Ihz+R6fC/BO6kLqyzGbKjR17KWAm4NHjvE=",
  "page/words.js": "KHUNaFluE2hGrtejE7YGnHJhNz6/vfE8RU5HqsKcosk=",
  "style.css": "/6/GCx2FR7Tuv55tOtBAOkWkbiOqf35edmQCGSBUunU="
};

// Files of two versions never mix: each version has a cache of its own.
const CACHE = `evenhand-home ${Object.values(FILES).join(" ")}`;

self.addEventListener("install", (event) => {
  const keep = async () => {
    const cache = await caches.open(CACHE);
    const fetched = Object.entries(FILES).map(async ([path, hash]) => {
      await cache.put(path, await fetch(path, { integrity: `sha256-${hash}`, cache: "no-store" }));
    });
    await Promise.all(fetched);
    await self.skipWaiting();
  };
  event.waitUntil(keep());
});

self.addEventListener("activate", (event) => {
  const tidy = async () => {
    const others = (await caches.keys()).filter((name) => name !== CACHE);
    await Promise.all(others.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(tidy());
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const scope = new URL(self.registration.scope);
  if (url.origin !== scope.origin || !url.pathname.startsWith(scope.pathname)) return;
  const path = url.pathname.slice(scope.pathname.length) || "index.html";
  if (!Object.hasOwn(FILES, path)) return;
  event.respondWith(caches.match(path, { cacheName: CACHE }).then((kept) => kept ?? Response.error()));
});
