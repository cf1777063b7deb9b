import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { App } from './dependencies.ts';

const ABOUT =
  'Sluice stores product events, exports them to your storage, reacts to them with functions, and evaluates feature flags.';

const frontPage = z
  .object({
    name: z.literal('Sluice'),
    description: z.string(),
    api_docs: z.url().meta({ description: 'A page to browse the API.' }),
    openapi: z.url().meta({ description: 'The OpenAPI document. `?format=json` answers it as JSON.' }),
    capture: z.url().meta({ description: 'Where events go, with the key of a project in the body.' }),
    flags: z.url().meta({ description: 'Where feature flags are evaluated, with the key of a project.' }),
    readiness: z.url().meta({ description: 'Whether this process can serve requests.' }),
  })
  .meta({ id: 'FrontPage' });

const STYLE = `
:root { color-scheme: light dark; --ink: #0f172a; --soft: #475569; --line: #dbe3ee; --ground: #f6f9fc; --card: #fff; --water: #0369a1; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf6; --soft: #9fb0c6; --line: #26364d; --ground: #0b1424; --card: #121e33; --water: #7dd3fc; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.6 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 4rem 1.25rem; }
svg { display: block; width: 3rem; height: 3rem; color: var(--water); }
h1 { margin: 1rem 0 .5rem; font-size: 2rem; line-height: 1.2; letter-spacing: -.02em; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1rem; }
p { margin: 0; max-width: 38rem; color: var(--soft); }
ul { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .75rem; margin: 2rem 0 0; padding: 0; list-style: none; }
li a { display: block; height: 100%; padding: 1rem; border: 1px solid var(--line); border-radius: .75rem; background: var(--card); color: inherit; text-decoration: none; }
li a:hover, li a:focus-visible { border-color: var(--water); }
li b { display: block; color: var(--water); }
li span { font-size: .9rem; color: var(--soft); }
pre { margin: 0; padding: 1rem; overflow-x: auto; border: 1px solid var(--line); border-radius: .75rem; background: var(--card); font: 14px/1.6 ui-monospace, monospace; }
code { font: .9em ui-monospace, monospace; color: var(--ink); }
h2 + pre + p { margin-top: .75rem; }
`;

const DRAWING = '<path d="M8 6v36M40 6v36M8 24q8-9 16 0t16 0M8 34q8-9 16 0t16 0"/>';
const ICON = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48" fill="none" stroke="#0284c7" stroke-width="4" stroke-linecap="round">${DRAWING}</svg>`,
)}`;

/** A page that loads nothing, runs nothing and is shown in no other page. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PLACES = [
  ['api/schema/swagger-ui/', 'API docs', 'Every route, its fields and its scopes.'],
  ['api/schema/', 'OpenAPI document', 'For generators of clients, and other tools.'],
  ['_readyz', 'State', 'Whether Postgres and Temporal answer.'],
] as const;

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (letter) => ENTITIES[letter] as string);

/** Returns how much a client wants a type: the `q` that it gives to this type, and 0 if it does not name it. */
function wish(accept: string, type: string): number {
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    if (name !== type) continue;
    const q = parameters.find((one) => one.startsWith('q='));
    return q === undefined ? 1 : Number(q.slice(2)) || 0;
  }
  return 0;
}

/** Returns whether a client names HTML, and JSON not more so. `*\/*`, which most programs send, names neither. */
function prefersHtml({ query, headers: { accept = '' } }: FastifyRequest): boolean {
  if ((query as { format?: unknown }).format === 'json') return false;
  const html = wish(accept, 'text/html');
  return html > 0 && html >= wish(accept, 'application/json');
}

function pageFor(publicUrl: string): string {
  const places = PLACES.map(
    ([path, name, about]) => `<li><a href="/${path}"><b>${name}</b><span>${about}</span></a></li>`,
  );
  const event = '{"api_key": "phc_…", "event": "signed up", "distinct_id": "user-1"}';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice</title>
<link rel="icon" href="${ICON}">
<style>${STYLE}</style>
</head>
<body>
<main>
<svg viewBox="0 0 48 48" fill="none" stroke="currentColor" stroke-width="4" stroke-linecap="round" aria-hidden="true">${DRAWING}</svg>
<h1>Sluice is running</h1>
<p>${ABOUT} This is its API. It has no pages of its own but this one: SDKs, tools and the command line use it.</p>
<ul>
${places.join('\n')}
</ul>
<h2>Send an event</h2>
<pre>curl ${escapeHtml(publicUrl)}/i/v0/e/ \\
  -H 'Content-Type: application/json' \\
  -d '${escapeHtml(event)}'</pre>
<p>The key of a project begins with <code>phc_</code>. The management API takes personal keys, which begin with <code>phx_</code>.
The first start prints both, and writes them to <code>credentials.json</code> in the data directory.</p>
</main>
</body>
</html>
`;
}

/** Adds what `GET /` answers: what this is and where to go, as a page for browsers and as JSON for everybody else. */
export function frontPageRoutes(app: App, publicUrl: string): void {
  const html = pageFor(publicUrl);
  const answer: z.output<typeof frontPage> = {
    name: 'Sluice',
    description: ABOUT,
    api_docs: `${publicUrl}/api/schema/swagger-ui/`,
    openapi: `${publicUrl}/api/schema/`,
    capture: `${publicUrl}/i/v0/e/`,
    flags: `${publicUrl}/flags`,
    readiness: `${publicUrl}/_readyz`,
  };
  app.get(
    '/',
    {
      schema: {
        tags: ['health'],
        summary: 'Say what this is and where to go',
        description: 'Browsers, whose `Accept` prefers `text/html`, get a page with the same content.',
        response: { 200: frontPage },
      },
    },
    async (request, reply) => {
      reply.header('vary', ['Accept', reply.getHeader('vary')].filter(Boolean).join(', '));
      if (!prefersHtml(request)) return answer;
      reply.header('content-security-policy', POLICY).type('text/html; charset=utf-8');
      return reply.send(html as never);
    },
  );
}
