// A page in jsdom: jsdom.mjs <package> <host> <project key> [<file of the page> [<who logs in there>]]. With `fetch`
// where the library asks for it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { JSDOM } from 'jsdom';

const [name, host, key, file = 'page.js', user] = process.argv.slice(2);
const folder = path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
const library = readFileSync(path.join(folder, 'dist/array.full.no-external.js'), 'utf8');
const page = readFileSync(path.join(import.meta.dirname, file), 'utf8');

const dom = new JSDOM('<!doctype html><title>Shop</title><script></script><p>Hello</p>', {
  url: 'http://shop.test/start?utm_source=mail',
  referrer: 'http://search.test/',
  runScripts: 'outside-only',
  pretendToBeVisual: true,
});
const { window } = dom;
const beacons = [];
// jsdom has neither; with both, the library takes the way it takes in browsers.
Object.assign(window, { fetch, Request, Response, Headers, CompressionStream, TextEncoder, AbortController });
Object.defineProperty(window.navigator, 'sendBeacon', {
  value(url, body) {
    const bytes = body instanceof window.Blob ? readBlob(body) : Promise.resolve(body);
    beacons.push(bytes.then((content) => fetch(url, { method: 'POST', body: content })));
    return true;
  },
});

function readBlob(blob) {
  return new Promise((resolve, reject) => {
    const reader = new window.FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = reject;
    reader.readAsArrayBuffer(blob);
  });
}

window.eval(library);
window.eval(`${page}; window.usePage = usePage;`);
window.user = user;
window.usePage(host, key, async () => {
  window.dispatchEvent(new window.Event('pagehide'));
  window.dispatchEvent(new window.Event('beforeunload'));
  await Promise.all(beacons);
  setTimeout(() => {
    window.close();
    process.exit(0);
  }, 500);
});
