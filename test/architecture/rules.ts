import type { Import } from './import-graph.ts';

/** A part of the tree with rules of its own. */
export interface Place {
  /** The folders and files that belong to it. The longest path that matches a file decides. */
  paths: readonly string[];
  /** What it holds: a cell of the table in docs/architecture.md. */
  holds: string;
  /** The places whose values it may import, beside itself. Types may come from anywhere that closes no circle. */
  imports: readonly string[];
  /** If given, only these packages may be imported. */
  onlyPackages?: readonly string[];
  /** Packages that must not be imported, their types included. A name that ends in `*` is a prefix. */
  neverPackages?: readonly string[];
  /** Packages that single files may import although the others must not. */
  except?: Readonly<Record<string, readonly string[]>>;
  /** A product imports neither another product nor an edge, their types included. */
  product?: string;
  /** What the table says instead of the list of imports. */
  says?: string;
}

const HTTP = ['fastify', 'fastify-*', '@fastify/*'];
const TEMPORAL = ['@temporalio/*'];
const FRAMEWORKS = [...HTTP, ...TEMPORAL];
const IO = [...FRAMEWORKS, 'pg', 'pg-copy-streams', '@aws-sdk/*', '@azure/*', 'undici', 'node:*'];
/** Computation: no network, no files, no processes. */
const PURE = IO.filter((name) => name !== 'node:*').concat(
  ...['node:fs', 'node:fs/promises', 'node:net', 'node:http', 'node:https', 'node:child_process'],
);

/** Leaves: they know nothing of ours but each other. */
const LEAVES = ['values', 'intervals', 'hog', 'properties', 'geoip', 'formats', 'refusals.ts'];
const PURE_LEAVES = ['values', 'intervals', 'refusals.ts'];
const PLATFORM = ['db', 'secrets', 'egress', 'telemetry'];

/** The folders of one product. A further product is a further call. */
function product(name: string, beside: readonly string[]): Record<string, Place> {
  const own = (folder: string) => `${name}/${folder}`;
  const part = (folder: string, holds: string, imports: readonly string[]): [string, Place] => [
    own(folder),
    { paths: [`${own(folder)}/`], holds, imports, neverPackages: FRAMEWORKS, product: name },
  ];
  const rest = ['db', 'tenancy', 'secrets', 'egress', 'telemetry', ...LEAVES, ...beside];
  const parts = ['rules', 'rows', 'reads'].map(own);
  return {
    ...Object.fromEntries([
      part('rules', 'what follows from rows and settings; pure', PURE_LEAVES),
      part('rows', 'the SQL of its tables', ['db', 'values']),
      part('reads', 'what the database and sealed settings say', [own('rules'), own('rows'), ...rest]),
    ]),
    [name]: {
      paths: [`${name}/`],
      holds: 'its port to Temporal, and what its commands and runs share',
      imports: [...parts, ...rest],
      neverPackages: FRAMEWORKS,
      product: name,
    },
    ...Object.fromEntries([
      part('runs', 'the steps of its workflows, behind `signal` and `beat`', [
        ...[name, own('commands'), ...parts, ...rest],
      ]),
      part('commands', 'what an actor can have done', [name, ...parts, ...rest]),
    ]),
    [own('manifest.ts')]: {
      paths: [own('manifest.ts')],
      holds: 'what it tells the house about itself',
      imports: [name, ...parts, own('runs'), own('commands'), ...rest],
      neverPackages: FRAMEWORKS,
      product: name,
    },
  };
}

/** The products, each with what it may import beside the platform. */
export const PRODUCTS = {
  exports: ['models', 'destinations'],
  actions: [],
  functions: [],
  integrations: ['integrations/kinds'],
  cohorts: [],
  flags: [],
  surveys: [],
  queries: [],
  annotations: [],
} as const;

/** Who may import whom. docs/architecture.md prints this as a table. */
export const PLACES: Record<string, Place> = {
  'products.ts': {
    paths: ['products.ts'],
    holds: 'the list of products',
    imports: Object.keys(PRODUCTS).map((name) => `${name}/manifest.ts`),
  },
  ...Object.assign({}, ...Object.entries(PRODUCTS).map(([name, beside]) => product(name, beside))),
  'integrations/kinds': {
    paths: ['integrations/kinds/'],
    holds: 'the kinds of integrations: settings, secrets and hosts of each; a registry',
    imports: ['integrations/rules', ...PURE_LEAVES],
    neverPackages: IO,
    product: 'integrations',
  },
  'api (app)': {
    paths: ['api/app.ts', 'api/main.ts', 'api/routes.ts'],
    holds: 'the API process: the list of routes, and what it is put together from',
    imports: [
      ...['api', 'api/public', 'api/areas', 'products.ts', 'capture', 'tenancy', 'schedules', 'config.ts'],
      ...['lifecycle.ts', ...Object.keys(PRODUCTS), 'models', ...PLATFORM, ...LEAVES],
    ],
    neverPackages: TEMPORAL,
  },
  'api/public': {
    paths: ['api/public/'],
    holds: 'the fast lane: requests without a personal key, each product with a gate and a budget',
    imports: ['api', 'db', 'tenancy', 'telemetry', ...LEAVES],
    neverPackages: TEMPORAL,
  },
  'api/areas': {
    paths: [
      ...['api/capture/', 'api/remote-config.ts', 'api/browser-scripts.ts', 'api/tenancy/', 'api/people/'],
      ...[
        'api/events/',
        'api/health.ts',
        'api/front-page.ts',
        ...Object.keys(PRODUCTS).map((name) => `api/${name}/`),
      ],
    ],
    holds: 'one folder for each area: routes with their schemas and views',
    imports: [
      ...['api', 'api/public', 'capture', 'tenancy', 'models', 'destinations', 'config.ts'],
      'integrations/kinds',
      ...Object.keys(PRODUCTS).flatMap((name) =>
        ['', '/rules', '/rows', '/reads', '/commands'].map((one) => `${name}${one}`),
      ),
      ...PLATFORM,
      ...LEAVES,
    ],
    neverPackages: TEMPORAL,
  },
  api: {
    paths: ['api/'],
    holds: 'what all routes share: access, errors, pages, validation, OpenAPI',
    imports: ['db', 'tenancy', 'telemetry', 'config.ts', ...LEAVES],
    neverPackages: TEMPORAL,
  },
  capture: {
    paths: ['capture/'],
    holds: 'an event in, a stored event out, with persons and groups',
    imports: ['db', 'telemetry', ...LEAVES],
    neverPackages: FRAMEWORKS,
  },
  tenancy: {
    paths: ['tenancy/'],
    holds:
      'rules of organizations, projects, people and keys; the actor; the activity log; what a product declares',
    imports: ['db', 'secrets', 'telemetry', ...PURE_LEAVES],
    neverPackages: FRAMEWORKS,
  },
  workflows: {
    paths: ['workflows/'],
    holds: 'deterministic orchestration, bundled by the worker',
    imports: ['workflows/names.ts'],
    onlyPackages: ['@temporalio/workflow', '@temporalio/common'],
    says: 'types only',
  },
  'workflows/names.ts': {
    paths: ['workflows/names.ts'],
    holds: 'names of workflows, queues and search attributes',
    imports: [],
    onlyPackages: ['@temporalio/common'],
  },
  schedules: {
    paths: ['schedules/'],
    holds: 'the only Temporal client; implements the ports that products declare',
    imports: [
      ...['workflows/names.ts', 'config.ts', 'telemetry', ...PURE_LEAVES],
      ...Object.keys(PRODUCTS).map((name) => `${name}/rules`),
    ],
    neverPackages: [...HTTP, '@temporalio/worker'],
  },
  activities: {
    paths: ['activities/'],
    holds: 'each activity by name: calls a run of a product, and translates its errors for Temporal',
    imports: [
      ...Object.keys(PRODUCTS).flatMap((name) => [name, `${name}/runs`]),
      'tenancy',
      'capture',
      ...PLATFORM,
      ...LEAVES,
    ],
    neverPackages: HTTP,
  },
  worker: {
    paths: ['worker/'],
    holds: 'the worker process',
    imports: [
      ...['activities', 'products.ts', 'schedules', 'workflows/names.ts', 'config.ts', 'lifecycle.ts'],
      ...[
        'tenancy',
        'capture',
        'models',
        ...Object.keys(PRODUCTS).flatMap((name) => [name, `${name}/reads`, `${name}/runs`]),
        ...PLATFORM,
        ...LEAVES,
      ],
    ],
    neverPackages: HTTP,
  },
  cli: {
    paths: ['cli/'],
    holds: '`npx sluice`',
    imports: [
      ...['products.ts', 'tenancy', 'schedules', 'backup', 'stack', 'config.ts', 'scripts', 'models'],
      ...Object.keys(PRODUCTS).flatMap((name) =>
        ['', '/rules', '/rows', '/reads', '/commands'].map((one) => `${name}${one}`),
      ),
      ...PLATFORM,
      ...LEAVES,
    ],
    neverPackages: HTTP,
  },
  models: {
    paths: ['models/'],
    holds: 'what can be exported: a folder for each model, and a registry; their rows as COPY statements',
    imports: ['db', 'hog', 'properties', 'intervals', 'values'],
    neverPackages: FRAMEWORKS,
  },
  destinations: {
    paths: ['destinations/'],
    holds: 'where exports go: a folder each, and a registry',
    imports: ['formats', 'egress', 'intervals', 'values'],
    neverPackages: FRAMEWORKS,
  },
  values: {
    paths: ['values/'],
    holds: 'zones, dates, texts, network ranges, and which keys are secret; pure',
    imports: [],
    // It compares addresses, and connects to none. It reads the marks of schemas.
    onlyPackages: ['node:net', 'lru-cache', 'zod'],
  },
  intervals: {
    paths: ['intervals/'],
    holds: 'time cut into intervals; pure',
    imports: ['values'],
    neverPackages: IO,
  },
  hog: {
    paths: ['hog/'],
    holds: 'the Hog language, functions of the host, and Liquid templates; pure',
    imports: ['values'],
    neverPackages: PURE,
    // It reads files of its own, once: code that runs in browsers.
    except: { 'hog/javascript/browser.ts': ['node:fs'], 'hog/threads/processor-time.ts': ['node:fs'] },
  },
  properties: {
    paths: ['properties/'],
    holds: 'matching of properties; pure',
    imports: ['hog', 'values'],
    neverPackages: IO,
  },
  geoip: {
    paths: ['geoip/'],
    holds: 'an address to a place, from a database file',
    imports: ['values'],
    neverPackages: [...FRAMEWORKS, 'pg'],
  },
  formats: {
    paths: ['formats/'],
    holds: 'the bytes of a COPY to JSON lines, CSV, Parquet and Arrow',
    imports: [],
    onlyPackages: ['node:crypto', 'node:fs', 'node:path', 'node:stream', 'node:util', 'node:zlib'],
  },
  'refusals.ts': {
    paths: ['refusals.ts'],
    holds: 'why a command refuses what it is asked to do',
    imports: ['values'],
    onlyPackages: [],
  },
  db: {
    paths: ['db/'],
    holds:
      'our Postgres: pool, migrations, locks, listen, COPY; events, tenancy and persons. It names no product',
    imports: ['values'],
    neverPackages: [...FRAMEWORKS, '@aws-sdk/*'],
  },
  secrets: {
    paths: ['secrets/'],
    holds: 'envelope encryption of what is stored',
    imports: ['values'],
    onlyPackages: ['node:crypto', 'node:fs', 'node:path'],
  },
  egress: {
    paths: ['egress/'],
    holds: 'the one guarded way out',
    imports: ['values'],
    neverPackages: [...FRAMEWORKS, 'pg'],
  },
  telemetry: {
    paths: ['telemetry/'],
    holds: 'the logger with redaction; metrics and their port',
    imports: [],
    neverPackages: [...FRAMEWORKS, 'pg'],
  },
  backup: {
    paths: ['backup/'],
    holds: 'the whole database to files and back',
    imports: ['db', 'values'],
    neverPackages: FRAMEWORKS,
  },
  stack: {
    paths: ['stack/'],
    holds: 'the embedded default behind `npm start`',
    imports: [
      ...['db', 'tenancy', 'secrets', 'telemetry', 'values', 'config.ts', 'scripts', 'products.ts'],
      'workflows/names.ts',
    ],
    neverPackages: ['@temporalio/client', '@temporalio/worker', '@temporalio/testing', ...HTTP],
  },
  'config.ts': {
    paths: ['config.ts'],
    holds: 'every setting, parsed once, by name',
    imports: ['values'],
    neverPackages: [...FRAMEWORKS, 'pg'],
  },
  'lifecycle.ts': {
    paths: ['lifecycle.ts'],
    holds: 'how a process starts, drains and stops',
    imports: ['config.ts', 'db', 'telemetry', 'secrets'],
    neverPackages: FRAMEWORKS,
  },
  scripts: {
    paths: ['scripts/', 'test/', 'bench/', 'docs/'],
    holds: 'what builds, proves, measures and tells',
    imports: [],
    says: 'anything',
  },
};

/** Only here may the Temporal client be used. */
const TEMPORAL_CLIENTS = new Set(['schedules', 'worker', 'scripts']);
/** Edges: no product knows them. */
const EDGES = new Set([
  ...['api', 'api (app)', 'api/public', 'api/areas', 'activities', 'workflows', 'schedules', 'worker', 'cli'],
  ...['stack', 'backup'],
]);
/** Only here may the environment be read. */
export const ENVIRONMENT_READERS = new Set([
  ...['config.ts', 'lifecycle.ts', 'stack', 'cli', 'scripts', 'test', 'bench', 'jest.config.mjs'],
]);

/** The name of the place that a file belongs to. */
export function placeOf(file: string): string | undefined {
  let [found, longest] = [undefined as string | undefined, 0];
  for (const [name, { paths }] of Object.entries(PLACES)) {
    for (const path of paths) {
      const matches = path.endsWith('/') ? file.startsWith(path) : file === path;
      if (matches && path.length > longest) [found, longest] = [name, path.length];
    }
  }
  return found;
}

const matches = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;

/** Says what is wrong with an import of a package. */
function packageFault(from: string, place: Place, { file, target, typeOnly }: Import): string | undefined {
  const { onlyPackages, neverPackages, except } = place;
  if (except?.[file]?.includes(target)) return undefined;
  if (onlyPackages && !typeOnly && !onlyPackages.some((one) => matches(one, target))) {
    return `${file} imports ${target}: ${from} may import ${onlyPackages.join(', ') || 'no package'} only`;
  }
  const never = neverPackages?.filter((one) => !one.startsWith('node:') || !typeOnly);
  if (never?.some((one) => matches(one, target))) return `${file} imports ${target}: ${from} must not`;
  if (target === '@temporalio/client' && !TEMPORAL_CLIENTS.has(from)) {
    return `${file} imports ${target}: schedules is the only Temporal client`;
  }
  return undefined;
}

/** Says what is wrong with an import of a file of ours. */
function ownFault(from: string, place: Place, { file, target, typeOnly }: Import): string | undefined {
  const to = placeOf(target);
  if (to === undefined || to === from) return undefined;
  if (place.product !== undefined) {
    const other = PLACES[to]?.product;
    if (other !== undefined && other !== place.product) {
      return `${file} imports ${target}: the product ${place.product} must not know the product ${other}`;
    }
    if (EDGES.has(to)) return `${file} imports ${target}: a product must not know an edge`;
  }
  if (typeOnly || place.imports.includes(to)) return undefined;
  return `${file} imports ${target}: ${from} must not import ${to}`;
}

/** One sentence for each import that the rules forbid. */
export function violations(graph: readonly Import[]): string[] {
  const broken = new Set<string>();
  for (const edge of graph) {
    const from = placeOf(edge.file);
    if (from === undefined) {
      if (edge.file.includes('/') || edge.file.endsWith('.ts'))
        broken.add(`${edge.file}: no place has it; add one in test/architecture/rules.ts`);
      continue;
    }
    if (from === 'scripts') continue;
    const place = PLACES[from] as Place;
    const fault = edge.own ? ownFault(from, place, edge) : packageFault(from, place, edge);
    if (fault) broken.add(fault);
  }
  return [...broken];
}

/** The table of docs/architecture.md. */
export function placesTable(): string {
  const folders = Object.entries(PLACES).filter(([, place]) => place.paths.length > 0);
  const rows = folders.map(([name, { paths, holds, imports, says }]) => {
    const named = paths.length > 1 ? paths.map((one) => `\`${one}\``).join(' ') : `\`${paths[0] ?? name}\``;
    const list = imports.filter((one) => !LEAVES.includes(one));
    const leaves = LEAVES.filter((one) => imports.includes(one));
    const all = leaves.length === LEAVES.length ? [...list, 'leaves'] : [...list, ...leaves];
    return `| ${named} | ${holds} | ${says ?? (all.map((one) => (one === 'leaves' ? one : `\`${one}\``)).join(', ') || '–')} |`;
  });
  return ['| Place | What it holds | May import (values) |', '|---|---|---|', ...rows].join('\n');
}
