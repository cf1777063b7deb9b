import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { z } from 'zod';
import { errors } from './errors.ts';
import type { Handle } from './public/exchange.ts';
import type { Lane, LaneMember } from './public/lane.ts';
import { type Packed, packed, packedAnswer } from './public/packed.ts';

/** The builds of posthog-js that a page loads as a whole. */
const BUILDS = [
  'array.js',
  'array.full.js',
  'array.full.es5.js',
  'array.no-external.js',
  'array.full.no-external.js',
];

/**
 * The parts that posthog-js loads when it needs them. Those for what Sluice does not have, such as the recorder and the toolbar, are
 * not among them: the settings of a project never ask for these.
 */
const PARTS = [
  'surveys.js',
  // A page may switch these on by itself. What they send are usual events.
  'dead-clicks-autocapture.js',
  'exception-autocapture.js',
  'tracing-headers.js',
  'web-vitals.js',
  'web-vitals-soft-navs.js',
  'web-vitals-with-attribution.js',
  'web-vitals-with-attribution-soft-navs.js',
];

export const BROWSER_SCRIPTS: readonly string[] = [...BUILDS, ...PARTS];

/** A page gets another version soon after Sluice has one, and asks in vain until then, which costs it a 304. */
const CACHE = 'public, max-age=300';
/** The file at the path of its version never changes. */
const CACHE_OF_VERSION = 'public, max-age=31536000, immutable';

const VERSION = /^\d{1,6}\.\d{1,6}\.\d{1,6}$/;

/** A request has no body. One that has is refused as soon as it is larger than this. */
const BODY_BYTES = 1024;
const MEMBER: LaneMember = {
  name: 'browser scripts',
  tag: 'capture',
  startsAlone: true,
  share: { held: 64 * BODY_BYTES, atWork: 64 * BODY_BYTES, unpacking: 0 },
  largestBody: { bytes: BODY_BYTES, refusal: 'A request for a script has no body.' },
};

/** Serves posthog-js to pages that load it from the address that they send to. */
export function browserScriptRoutes(lane: Lane): void {
  const library = createRequire(import.meta.url).resolve('posthog-js/package.json');
  const { version } = JSON.parse(readFileSync(library, 'utf8')) as { version: string };
  const [major] = version.split('.');
  /** Read and compressed when they are asked for the first time. */
  const files = new Map<string, Promise<Packed>>();
  function fileOf(name: string): Promise<Packed> {
    if (!BROWSER_SCRIPTS.includes(name)) throw errors.notFound('There is no such script.');
    const known = files.get(name);
    if (known) return known;
    const read = readFile(path.join(path.dirname(library), 'dist', name), 'utf8').then(packed);
    files.set(name, read);
    read.catch(() => files.delete(name));
    return read;
  }
  const { add } = lane.join(MEMBER);
  const answer = async ({ request }: Parameters<Handle>[0], name: string, cache: string) =>
    packedAnswer(request, await fileOf(name), 'application/javascript', cache);
  const latest: Handle = (incoming) =>
    answer(incoming, (incoming.request.params as { name: string }).name, CACHE);
  const versioned: Handle = async (incoming) => {
    const { name: asked, script } = incoming.request.params as { name: string; script: string };
    if (asked === version) return answer(incoming, script, CACHE_OF_VERSION);
    if (asked === major) return answer(incoming, script, CACHE);
    // A part goes with every client of its major version, as for clients that do not name theirs. A page that names the version of
    // a build must not get another one. The address is relative, for pages that reach Sluice under a path of their own.
    if (PARTS.includes(script) && VERSION.test(asked) && asked.startsWith(`${major}.`)) {
      return { status: 307, body: '', headers: ['location', `../${script}`, 'cache-control', CACHE] };
    }
    throw errors.notFound(`There is posthog-js ${version} only.`);
  };
  // The router wants one name for what stands at one place.
  add('GET', '/static/:name', latest, {
    summary: 'Load posthog-js or a part of it',
    params: z.object({ name: z.string().meta({ description: 'The file.' }) }),
    answer: z.string(),
  });
  add('GET', '/static/:name/:script', versioned, {
    summary: 'Load a version of posthog-js or a part of it',
    params: z.object({
      name: z.string().meta({ description: 'The version, or its first number.' }),
      script: z.string().meta({ description: 'The file.' }),
    }),
    answer: z.string(),
  });
}
