// A page in jsdom that loads scripts as browsers do: site.mjs <package> <host> <project key>. Prints what the functions saw.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { JSDOM, VirtualConsole } from 'jsdom';

const [name, host, key] = process.argv.slice(2);
const folder = path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
const library = readFileSync(path.join(folder, 'dist/array.js'), 'utf8');
const page = readFileSync(path.join(import.meta.dirname, 'site.js'), 'utf8');
const dom = new JSDOM('<!doctype html><title>Shop</title><script></script><body><p>Hello</p>', {
  url: 'http://shop.test/start',
  runScripts: 'dangerously',
  resources: 'usable',
  pretendToBeVisual: true,
  virtualConsole: new VirtualConsole(),
});
const { window } = dom;
Object.assign(window, { fetch, Request, Response, Headers, TextEncoder, AbortController });
window.eval(library);
window.eval(`${page}; window.useSite = useSite;`);
window.useSite(host, key, (seen) => {
  process.stdout.write(seen, () => process.exit(0));
});
