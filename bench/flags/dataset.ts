// What the benchmarks of flags work with: flags, persons, and the bodies of requests.
import pg from 'pg';

/** The key of the project. */
export const TOKEN = 'phc_bench';

/** Of 50 flags: 20 are on, 15 at half, 10 have two conditions on the person, and 5 have three variants. */
export function filtersOf(index: number): object {
  const kind = index % 50;
  const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] };
  if (kind < 20) return everybody;
  if (kind < 35) return { groups: [{ properties: [], rollout_percentage: 50 }] };
  if (kind < 45) {
    return {
      groups: [
        {
          properties: [
            { key: 'email', type: 'person', operator: 'icontains', value: '@example.org' },
            { key: 'plan', type: 'person', operator: 'exact', value: ['enterprise', 'pro'] },
          ],
          rollout_percentage: 100,
        },
        {
          properties: [{ key: 'age', type: 'person', operator: 'gte', value: '30' }],
          rollout_percentage: 60,
        },
      ],
    };
  }
  const variants = [50, 30, 20].map((share, place) => ({
    key: `variant-${place}`,
    rollout_percentage: share,
  }));
  return { ...everybody, multivariate: { variants }, payloads: { 'variant-1': '{"color":"blue"}' } };
}

export const keyOf = (index: number): string => `flag-${index}`;

/** The definitions, in the form in which SDKs load them. */
export const definitionsOf = (count: number) => ({
  flags: Array.from({ length: count }, (_, index) => ({
    ...{ id: index + 1, key: keyOf(index), active: true, deleted: false, version: 1 },
    ...{ ensure_experience_continuity: false, filters: filtersOf(index) },
  })),
  ...{ group_type_mapping: {}, cohorts: {} },
});

/** The properties of a person, as SQL makes them too. */
export const propertiesOf = (person: number) => ({
  email: `person-${person}@example.com`,
  plan: ['free', 'pro', 'enterprise'][person % 3],
  age: 20 + (person % 40),
});
export const idOf = (person: number): string => `0190f3d2-7c1e-7d3a-9a51-${String(person).padStart(12, '0')}`;

/** The body of a request for the flags of a person. */
export const bodyOf = (person: number, withProperties: boolean): string =>
  JSON.stringify({
    ...{ api_key: TOKEN, distinct_id: idOf(person) },
    ...(withProperties ? { person_properties: propertiesOf(person) } : {}),
  });

/** The bodies of many requests, for the load generator. */
export const bodiesOf = (persons: number, withProperties: boolean): string =>
  Array.from({ length: 5_000 }, (_, index) => bodyOf((index * 7_919) % persons, withProperties)).join('\n');

/** Fills a database with a project, its flags and its persons. */
export async function prepare(databaseUrl: string, flags: number, persons: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(
      `with o as (insert into organizations (id, name, slug) values (gen_random_uuid(), 'bench', 'bench') returning id)
       insert into projects (uuid, organization_id, name, api_token) select gen_random_uuid(), id, 'bench', $1 from o`,
      [TOKEN],
    );
    const indexes = Array.from({ length: flags }, (_, index) => index);
    await client.query(
      `insert into feature_flags (project_id, key, filters) select p.id, f.key, f.filters::json
       from projects p, unnest($1::text[], $2::text[]) as f (key, filters)`,
      [indexes.map(keyOf), indexes.map((index) => JSON.stringify(filtersOf(index)))],
    );
    await client.query(
      `insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select p.id, md5('person' || n)::uuid, now(), true, jsonb_build_object('email', 'person-' || n || '@example.com',
         'plan', (array['free', 'pro', 'enterprise'])[1 + n % 3], 'age', 20 + n % 40, 'name', 'Person ' || n,
         '$browser', 'Chrome', '$os', 'Mac OS X', '$initial_referrer', 'https://www.google.com/search?q=' || md5(n::text)), 0, now()
       from projects p, generate_series(0, $1::int - 1) n`,
      [persons],
    );
    await client.query(
      `insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
       select p.id, '0190f3d2-7c1e-7d3a-9a51-' || lpad(n::text, 12, '0'), md5('person' || n)::uuid, 0, now()
       from projects p, generate_series(0, $1::int - 1) n`,
      [persons],
    );
    await client.query('analyze');
  } finally {
    await client.end();
  }
}
