import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CLIENTS, runProgram } from './client-programs.ts';

/** The browser, alone with itself: no profile, no updates, nobody but the loopback. */
const ALONE = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-extensions',
  '--disable-default-apps',
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
];

function pageOf(host: string, token: string): string {
  return `<!doctype html><title>Shop</title><script src="/page.js"></script><script src="/library.js"></script>
<script>window.usePage(${JSON.stringify(host)}, ${JSON.stringify(token)}, () => { location.href = '/left'; });</script>`;
}

interface Visit {
  library: string;
  host: string;
  token: string;
  /** What the page sends when it is left has come; until then the browser must live. */
  arrived: Promise<unknown>;
}

/** Opens a page that uses posthog-js on an origin of its own, until it has been left and everything has come. */
export async function visit(browser: string, { library, host, token, arrived }: Visit): Promise<void> {
  const folder = path.dirname(createRequire(import.meta.url).resolve(`${library}/package.json`));
  const files = {
    '/': pageOf(host, token),
    '/page.js': `${readFileSync(path.join(CLIENTS, 'page.js'), 'utf8')}; window.usePage = usePage;`,
    '/library.js': readFileSync(path.join(folder, 'dist/array.full.no-external.js'), 'utf8'),
    '/left': '<!doctype html><title>Left</title><script>fetch("/done")</script>',
  };
  await browse(browser, { files, path: '/?utm_source=mail', arrived });
}

interface Site {
  files: Record<string, string>;
  path: string;
  arrived?: Promise<unknown>;
}

/** Serves a site and opens a page of it, until it asks for `/done`: what it posted there. */
export async function browse(browser: string, { files, path: page, arrived }: Site): Promise<string> {
  const { promise: done, resolve: finish } = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    const name = (request.url as string).split('?')[0] as string;
    const file = name === '/done' ? 'done' : files[name];
    const type = name.endsWith('.js') ? 'application/javascript' : 'text/html';
    let posted = '';
    request.on('data', (chunk) => {
      posted += chunk;
    });
    request.on('end', () => {
      response
        .writeHead(file === undefined ? 404 : 200, { 'content-type': `${type}; charset=utf-8` })
        .end(file);
    });
    if (name === '/done') response.once('close', () => finish(posted));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const profile = mkdtempSync(path.join(tmpdir(), 'sluice-chromium-'));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${page}`;
    const result = await runProgram(browser, [...ALONE, `--user-data-dir=${profile}`, url], {
      until: Promise.all([done, arrived?.catch(() => undefined)]),
    });
    if (!server.listening || result.code === 1) throw new Error(`Chromium failed:\n${result.output}`);
    return await Promise.race([done, Promise.reject(new Error(`Chromium ended early:\n${result.output}`))]);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
