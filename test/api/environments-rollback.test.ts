import { describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
const url = (tenant: Tenant) => `/api/organizations/${tenant.organizationId}/environments_rollback/`;

async function withProjects(count: number): Promise<{ tenant: Tenant; projects: number[] }> {
  const tenant = await api.createTenant('Rollback');
  const projects = [tenant.projectId];
  while (projects.length < count) {
    const made = await api.request(tenant, 'POST', '/api/projects/', { name: `Project ${projects.length}` });
    projects.push(made.json().id);
  }
  return { tenant, projects };
}

async function holdConfiguration(projects: number[]): Promise<void> {
  for (const project of projects) {
    await api.pool.query(
      `insert into wizard_sessions (hash, expires_at, project_id) values ($1, now() + interval '1 hour', $2)`,
      [`of ${project}`, project],
    );
  }
}

async function configurationOf(projects: number[]): Promise<Record<string, number>> {
  const { rows } = await api.pool.query(
    'select hash, project_id from wizard_sessions where hash = any($1) order by hash',
    [projects.map((one) => `of ${one}`)],
  );
  return Object.fromEntries(rows.map((row) => [row.hash, row.project_id]));
}

const mustMap = (source: string) =>
  `Environment mappings must map each environment id to one environment id; "${source}" does not.`;

describe('environments_rollback', () => {
  test('moves configuration and answers with the organization', async () => {
    const { tenant, projects } = await withProjects(3);
    const [one, two, three] = projects as [number, number, number];
    await holdConfiguration(projects);
    const answer = await api.request(tenant, 'POST', url(tenant), {
      [one]: two,
      [two]: String(two),
      [three]: two,
    });
    const organization = await api.request(tenant, 'GET', `/api/organizations/${tenant.organizationId}/`);
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      { ...organization.json(), success: true, message: 'Migration started' },
    ]);
    expect(await configurationOf(projects)).toEqual({
      [`of ${one}`]: two,
      [`of ${two}`]: two,
      [`of ${three}`]: two,
    });
  });

  test('moves all at once: what arrives at a project does not travel on', async () => {
    const { tenant, projects } = await withProjects(3);
    const [one, two, three] = projects as [number, number, number];
    await holdConfiguration(projects);
    await api.request(tenant, 'POST', url(tenant), { [one]: two, [two]: three, [three]: one });
    expect(await configurationOf(projects)).toEqual({
      [`of ${one}`]: two,
      [`of ${two}`]: three,
      [`of ${three}`]: one,
    });
  });

  test('happens once', async () => {
    const { tenant, projects } = await withProjects(2);
    const body = { [projects[0] as number]: projects[1] };
    const answers = await Promise.all([1, 2].map(() => api.request(tenant, 'POST', url(tenant), body)));
    expect(answers.map((one) => one.statusCode).sort()).toEqual([200, 400]);
    for (const again of [body, {}, { x: 'y' }]) {
      const refused = await api.request(tenant, 'POST', url(tenant), again);
      expect([refused.statusCode, refused.json()]).toEqual([
        400,
        refusals.field(
          null,
          'invalid_input',
          'Environments rollback has already been requested for this organization.',
        ),
      ]);
    }
  });

  test('a refused one can be repeated', async () => {
    const { tenant, projects } = await withProjects(2);
    expect((await api.request(tenant, 'POST', url(tenant), {})).statusCode).toBe(400);
    const body = { [projects[0] as number]: projects[1] };
    expect((await api.request(tenant, 'POST', url(tenant), body)).statusCode).toBe(200);
  });

  test.each([
    [{}, 'Environment mappings are required'],
    [undefined, 'Environment mappings are required'],
    [{ x: 1 }, mustMap('x')],
    [{ '1': 'x' }, mustMap('1')],
    [{ '1': [2] }, mustMap('1')],
    [{ '1': 1.5 }, mustMap('1')],
    [{ '1': null }, mustMap('1')],
    [{ '1': true }, mustMap('1')],
    [{ '-1': 1 }, mustMap('-1')],
    [{ '1e3': 1 }, mustMap('1e3')],
    [{ '1': 1, '01': 2 }, mustMap('01')],
    [{ ['9'.repeat(500)]: 1 }, mustMap('9'.repeat(100))],
    [{ '999999998': 999999999 }, 'Environments not found: {999999998, 999999999}'],
    [{ '0': -5 }, 'Environments not found: {-5, 0}'],
    [{ '0': 99999999999 }, 'Environments not found: {0, 99999999999}'],
  ])('refuses %j', async (body, detail) => {
    const { tenant } = await withProjects(1);
    const answer = await api.request(tenant, 'POST', url(tenant), body);
    expect([answer.statusCode, answer.json()]).toEqual([400, refusals.field(null, 'invalid_input', detail)]);
  });

  test('names the project of another organization like one that is not there', async () => {
    const { tenant } = await withProjects(1);
    const other = await api.createTenant('Other');
    const ask = async (id: number) => {
      const answer = await api.request(tenant, 'POST', url(tenant), { [tenant.projectId]: id });
      return [answer.statusCode, answer.body.replaceAll(String(id), 'ID')];
    };
    expect(await ask(other.projectId)).toEqual(await ask(999_999_999));
  });

  test('takes a key in the body without counting it as a mapping', async () => {
    const { tenant, projects } = await withProjects(1);
    const answer = await api.request(null, 'POST', url(tenant), {
      personal_api_key: tenant.key,
      [projects[0] as number]: projects[0],
    });
    expect(answer.statusCode).toBe(200);
  });
});
