// Harm by what is large and allowed: as many flags as a project may have, listed again and again, and bodies of the largest size.
import type { Ask } from './http.ts';
import type { Means } from './misbehave.ts';

/** Flags of 350 kB each, until the project has as many bytes of them as it may. */
const MOST_FLAGS = 60;
const VALUES = 10_000;

const words = (count: number) => Array.from({ length: count }, (_, n) => `value ${n} ${'z'.repeat(20)}`);

export async function lists({ tenant, own, isOver, keepAsking }: Means): Promise<void> {
  const project = `/api/projects/${tenant.projectId}`;
  const headers = { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' };
  const get = (path: string): Ask => ({ path: `${project}${path}`, headers });
  const post = (path: string, body: object): Ask => ({
    ...{ method: 'POST', path: `${project}${path}`, headers, body: JSON.stringify(body) },
  });
  const properties = [{ key: 'plan', type: 'person', operator: 'exact', value: words(VALUES) }];
  for (let n = 0; n < MOST_FLAGS && !isOver(); n += 1) {
    const made = await own.ask(
      post('/feature_flags/', { key: `large-${n}`, filters: { groups: [{ properties }] } }),
    );
    if (made !== '201') break;
  }
  const manyInputs = post('/hog_functions/new/check/', {
    hog: 'print(1)',
    inputs_schema: words(4_000).map((label, n) => ({ key: `k${n}`, type: 'string', label })),
    inputs: Object.fromEntries(words(4_000).map((value, n) => [`k${n}`, { value }])),
  });
  await Promise.all([
    keepAsking('flags', 4, () => get('/feature_flags/?limit=100')),
    keepAsking('own flags', 2, () => get('/feature_flags/my_flags/')),
    keepAsking('activity', 2, () => get('/activity_log/?limit=100')),
    keepAsking('large bodies, refused', 8, () => manyInputs),
  ]);
}
