import type { Import } from './import-graph.ts';

interface FolderRule {
  /** Folders (or top-level files) of ours whose values may be imported. Types may come from anywhere but `neverTypes`. */
  own: string[];
  /** Packages that must not be imported, by exact name or by prefix ending in `*`. */
  neverPackages?: string[];
  /** If given, the only packages whose values may be imported. */
  onlyPackages?: string[];
  /** Files that may import packages which the others must not. */
  except?: Record<string, string[]>;
}

const IO = ['pg', 'pg-copy-streams', 'fastify', '@fastify/*', '@temporalio/*', '@aws-sdk/*', 'node:*'];
const TEMPORAL_CLIENT = ['@temporalio/client', '@temporalio/worker', '@temporalio/testing'];

/** Who may import whom. The table in docs/architecture.md says the same in words. */
export const rules: Record<string, FolderRule> = {
  'products.ts': { own: ['exports'] },
  workflows: {
    own: [],
    onlyPackages: ['@temporalio/workflow', '@temporalio/common'],
  },
  activities: {
    own: [
      'capture',
      'tenancy',
      'exports',
      'destinations',
      'models',
      'formats',
      'functions',
      'schedules',
      'intervals',
      'values',
      'egress',
      'secrets',
      'db',
      'telemetry',
      'refusals.ts',
    ],
    neverPackages: ['fastify', '@fastify/*'],
  },
  worker: {
    own: [
      'products.ts',
      'activities',
      'db',
      'egress',
      'exports',
      'hog',
      'schedules',
      'secrets',
      'telemetry',
      'config.ts',
      'lifecycle.ts',
      'workflows/names.ts',
    ],
    neverPackages: ['fastify', '@fastify/*'],
  },
  api: {
    own: [
      'products.ts',
      'capture',
      'flags',
      'functions',
      'geoip',
      'hog',
      'properties',
      'schedules',
      'intervals',
      'values',
      'secrets',
      'egress',
      'db',
      'tenancy',
      'exports',
      'destinations',
      'models',
      'telemetry',
      'config.ts',
      'lifecycle.ts',
      'refusals.ts',
    ],
    neverPackages: ['@temporalio/*'],
  },
  capture: {
    own: ['geoip', 'hog', 'properties', 'values', 'db', 'telemetry'],
    neverPackages: ['@temporalio/*', 'fastify', '@fastify/*'],
  },
  functions: {
    own: ['hog', 'properties', 'values', 'egress', 'db', 'secrets', 'telemetry'],
    neverPackages: ['@temporalio/*', 'fastify', '@fastify/*'],
  },
  exports: {
    own: [
      'db',
      'destinations',
      'models',
      'intervals',
      'values',
      'secrets',
      'egress',
      'hog',
      'tenancy',
      'formats',
      'telemetry',
      'refusals.ts',
    ],
    neverPackages: ['@temporalio/*', 'fastify', '@fastify/*'],
  },
  models: {
    own: ['db', 'hog', 'properties', 'intervals', 'values'],
    neverPackages: ['@temporalio/*', 'fastify', '@fastify/*'],
  },
  schedules: {
    own: [
      'db',
      'exports',
      'intervals',
      'values',
      'telemetry',
      'config.ts',
      'refusals.ts',
      'workflows/names.ts',
    ],
    neverPackages: ['fastify', '@fastify/*', '@temporalio/worker'],
  },
  tenancy: { own: ['db'], neverPackages: ['@temporalio/*', 'fastify', '@fastify/*'] },
  secrets: { own: [], onlyPackages: ['node:crypto', 'node:fs', 'node:path'] },
  telemetry: { own: [], neverPackages: ['pg', '@temporalio/*', 'fastify', '@fastify/*'] },
  egress: { own: ['values'], neverPackages: ['pg', '@temporalio/*', 'fastify', '@fastify/*'] },
  flags: {
    own: ['properties', 'hog', 'geoip', 'values'],
    neverPackages: IO.filter((name) => name !== 'node:*'),
  },
  properties: { own: ['hog', 'values'], neverPackages: IO.filter((name) => name !== 'node:*') },
  hog: {
    own: ['values'],
    neverPackages: [
      'pg',
      'pg-copy-streams',
      'fastify',
      '@fastify/*',
      '@temporalio/*',
      '@aws-sdk/*',
      'node:fs',
      'node:net',
      'node:http',
      'node:child_process',
    ],
    // It reads its own files once: code that runs in browsers.
    except: { 'hog/javascript/browser.ts': ['node:fs'] },
  },
  intervals: { own: ['values'], neverPackages: IO },
  geoip: { own: ['values'], neverPackages: IO.filter((name) => name !== 'node:*') },
  // node:net compares addresses there, and connects to none.
  values: { own: [], onlyPackages: ['node:net'] },
  destinations: { own: ['formats', 'egress'], neverPackages: ['fastify', '@fastify/*', '@temporalio/*'] },
  formats: {
    own: [],
    onlyPackages: ['node:crypto', 'node:fs', 'node:path', 'node:stream', 'node:util', 'node:zlib'],
  },
  db: { own: [], neverPackages: ['fastify', '@fastify/*', '@temporalio/*', '@aws-sdk/*'] },
  stack: {
    own: ['config.ts', 'db', 'tenancy', 'secrets', 'telemetry', 'scripts'],
    neverPackages: TEMPORAL_CLIENT,
  },
  backup: { own: ['db'], neverPackages: ['fastify', '@fastify/*', '@temporalio/*'] },
  cli: {
    own: [
      'products.ts',
      'backup',
      'config.ts',
      'db',
      'exports',
      'hog',
      'intervals',
      'values',
      'tenancy',
      'secrets',
      'schedules',
      'stack',
      'telemetry',
      'scripts',
      'refusals.ts',
    ],
    neverPackages: ['fastify', '@fastify/*'],
  },
};

/** Only here may the Temporal client be used. */
const TEMPORAL_CLIENT_FOLDERS = new Set(['schedules', 'worker', 'test', 'bench', 'scripts']);
/** Only here may the environment be read. */
export const ENVIRONMENT_READERS = new Set([
  'config.ts',
  'lifecycle.ts',
  'stack',
  'cli',
  'scripts',
  'test',
  'bench',
  'jest.config.mjs',
]);

const placeOf = (file: string) => file.split('/')[0] as string;

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** One sentence per import that the rules forbid. */
export function violations(graph: Import[]): string[] {
  const broken: string[] = [];
  for (const edge of graph) {
    const from = placeOf(edge.file);
    if (['test', 'bench', 'scripts', 'docs'].includes(from) || edge.file.endsWith('.config.mjs')) continue;
    const to = placeOf(edge.target);
    const rule = rules[from];
    if (!rule) {
      if (edge.file.includes('/'))
        broken.push(`${edge.file}: the folder ${from} has no rule in test/architecture/rules.ts`);
      continue;
    }
    if (edge.typeOnly) continue;
    if (edge.own) {
      if (to !== from && !rule.own.includes(to) && !rule.own.includes(edge.target))
        broken.push(`${edge.file} imports ${edge.target}: ${from} must not import ${to}`);
      continue;
    }
    if (rule.except?.[edge.file]?.includes(edge.target)) continue;
    if (rule.onlyPackages && !rule.onlyPackages.some((one) => matches(one, edge.target))) {
      broken.push(
        `${edge.file} imports ${edge.target}: ${from} may import ${rule.onlyPackages.join(', ')} only`,
      );
    }
    if (rule.neverPackages?.some((one) => matches(one, edge.target))) {
      broken.push(`${edge.file} imports ${edge.target}: ${from} must not`);
    }
    if (edge.target === '@temporalio/client' && !TEMPORAL_CLIENT_FOLDERS.has(from)) {
      broken.push(`${edge.file} imports @temporalio/client: schedules is the only Temporal client`);
    }
  }
  return broken;
}
