// A page that uses posthog-js as its documentation says, with nothing switched off: quiet.mjs <package> <host> <project key>.
// Prints what the library wrote to the console, and the flags that it knows.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { JSDOM, VirtualConsole } from 'jsdom';

const [name, host, key] = process.argv.slice(2);
const folder = path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
const library = readFileSync(path.join(folder, 'dist/array.full.no-external.js'), 'utf8');
const written = [];
const virtualConsole = new VirtualConsole();
for (const kind of ['warn', 'error', 'jsdomError']) {
  virtualConsole.on(kind, (...what) => written.push(`${kind}: ${what.map(String).join(' ')}`));
}
const { window } = new JSDOM('<!doctype html><title>Shop</title><script></script><p>Hello</p>', {
  url: 'http://shop.test/',
  runScripts: 'outside-only',
  pretendToBeVisual: true,
  virtualConsole,
});
const agent =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36';
Object.defineProperty(window.navigator, 'userAgent', { value: agent });
const inBrowser = (url, options = {}) =>
  fetch(url, {
    ...options,
    headers: { ...options.headers, origin: 'http://shop.test', 'user-agent': agent },
  });
Object.assign(window, {
  fetch: inBrowser,
  Request,
  Response,
  Headers,
  CompressionStream,
  TextEncoder,
  AbortController,
});
window.eval(library);
let loads = 0;
window.posthog.init(key, { api_host: host, request_queue_config: { flush_interval_ms: 250 } });
window.posthog.onFeatureFlags(() => {
  loads += 1;
  if (loads === 1) {
    window.posthog.capture('looked', { price: 5 });
    window.posthog.identify('ann', { email: 'ann@acme.com' });
    return;
  }
  if (loads > 2) return;
  const { posthog } = window;
  const told = { on: posthog.getFeatureFlag('on'), payload: posthog.getFeatureFlagPayload('on') };
  setTimeout(() => {
    process.stdout.write(`${JSON.stringify({ ...told, written })}\n`, () => process.exit(0));
  }, 1_500);
});
setTimeout(() => {
  process.stdout.write(`${JSON.stringify({ loads, written })}\n`, () => process.exit(1));
}, 20_000);
