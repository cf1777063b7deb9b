import { expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

// How many of a thing somebody may have.

const api = apiForFile();

/** Creates as many at once as there are numbers, and returns the statuses in order. */
async function create(app: App, { key }: Tenant, url: string, many: number) {
  const answers = await Promise.all(
    Array.from({ length: many }, (_, n) =>
      app.inject({
        ...{ method: 'POST', url, payload: { name: `one of many ${n}` } },
        headers: { authorization: `Bearer ${key}` },
      }),
    ),
  );
  return answers.sort((one, other) => one.statusCode - other.statusCode);
}
const statuses = (answers: { statusCode: number }[]) => answers.map((one) => one.statusCode);

test('an organization has a number of projects at most, also if they are created at once', async () => {
  const [anna, ben] = [await api.createTenant('Anna'), await api.createTenant('Ben')];
  const app = await api.rebuild({ config: { ...api.config, SLUICE_PROJECTS_PER_ORGANIZATION: 3 } });
  try {
    const url = `/api/organizations/${anna.organizationId}/projects/`;
    const answers = await create(app, anna, url, 6);
    // It began with one.
    expect(statuses(answers)).toEqual([201, 201, 400, 400, 400, 400]);
    expect(answers.at(-1)?.json()).toMatchObject({
      code: 'invalid_input',
      detail:
        'This organization already has 3 projects, the most that it may have. Delete one before creating another.',
    });
    expect(statuses(await create(app, anna, '/api/projects/', 1))).toEqual([400]);
    expect(statuses(await create(app, ben, '/api/projects/', 1))).toEqual([201]);
  } finally {
    await app.close();
  }
});

test('a user who owns a number of organizations creates no more, also if they are created at once', async () => {
  const clara = await api.createTenant('Clara');
  const app = await api.rebuild({ config: { ...api.config, SLUICE_ORGANIZATIONS_PER_USER: 3 } });
  try {
    const answers = await create(app, clara, '/api/organizations/', 6);
    expect(statuses(answers)).toEqual([201, 201, 400, 400, 400, 400]);
    expect(answers.at(-1)?.json()).toMatchObject({
      code: 'invalid_input',
      detail:
        'You already own 3 organizations, the most that a user may create. Delete one before creating another.',
    });
  } finally {
    await app.close();
  }
});
