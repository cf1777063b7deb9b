import { beforeAll, describe, expect, test } from '@jest/globals';
import { stepsOf, versionsOf } from '../../actions/reads/steps-of.ts';
import { cohortsToInline } from '../../cohorts/reads/reached-cohorts.ts';
import { type FunctionRunDependencies, recompileFunctions } from '../../functions/runs/recompile.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
const work = { signal: new AbortController().signal, beat: () => undefined };

beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

const deps = (): FunctionRunDependencies => ({
  pool: api.pool,
  compiler: api.functionCompiler,
  actions: { steps: stepsOf, versions: versionsOf },
  cohorts: cohortsToInline,
  keyring: api.keyring,
  logger: { warn: () => undefined, info: () => undefined },
});
const recompile = () => recompileFunctions(deps(), work);
const url = (path: string) => `/api/projects/${anna.projectId}/${path}`;
const send = async (method: 'POST' | 'PATCH', path: string, body: object) => {
  const answer = await api.request(anna, method, url(path), body);
  expect([answer.statusCode, answer.json()]).toEqual([method === 'POST' ? 201 : 200, expect.anything()]);
  return answer.json();
};
const shown = async (id: string) => (await api.request(anna, 'GET', url(`hog_functions/${id}/`))).json();

const accounts = (value: string) => [{ key: 'email', value, operator: 'not_icontains', type: 'person' }];

describe('functions whose filters name something', () => {
  test('are compiled again when it has changed, and only then', async () => {
    const action = await send('POST', 'actions/', { name: 'paid', steps: [{ event: 'paid' }] });
    const named = await send('POST', 'hog_functions/', {
      hog: 'return inputs.token',
      inputs_schema: [{ key: 'token', type: 'string', secret: true }],
      inputs: { token: { value: 'geheim' } },
      filters: { actions: [{ id: String(action.id), type: 'actions' }] },
      enabled: true,
    });
    const mapped = await send('POST', 'hog_functions/', {
      hog: 'return 1',
      mappings: [{ name: 'm', filters: { actions: [{ id: action.id, type: 'actions' }] } }],
    });
    const other = await send('POST', 'hog_functions/', {
      hog: 'return 1',
      filters: { events: [{ id: 'a' }] },
    });
    expect(named.filters.bytecode).toContain('paid');
    expect(await recompile()).toBe(0);

    await send('PATCH', `actions/${action.id}/`, { steps: [{ event: 'bought' }] });
    expect(await recompile()).toBe(2);
    const after = await shown(named.id);
    expect(after.filters.bytecode).toContain('bought');
    expect(after).toMatchObject({
      updated_at: named.updated_at,
      version: 1,
      inputs: { token: { secret: true } },
    });
    expect((await shown(mapped.id)).mappings[0].filters.bytecode).toContain('bought');
    expect(await shown(other.id)).toEqual(other);
    expect(await recompile()).toBe(0);
  });

  test('are compiled again when the test accounts change', async () => {
    await send('PATCH', '', { test_account_filters: accounts('@a.com') });
    const filters = { filter_test_accounts: true };
    const { id } = await send('POST', 'hog_functions/', { hog: 'return 1', filters });
    await send('PATCH', '', { test_account_filters: accounts('@b.com') });
    expect(await recompile()).toBe(1);
    expect((await shown(id)).filters.bytecode).toContain('%@b.com%');
  });

  test('go on as they were when they cannot be compiled, say why, and recover', async () => {
    await send('PATCH', '', { test_account_filters: accounts('@c.com') });
    const filters = { filter_test_accounts: true };
    const { id } = await send('POST', 'hog_functions/', { hog: 'return 1', filters });
    await recompile();
    await send('PATCH', '', { test_account_filters: [{ key: 'id', type: 'cohort', value: 5 }] });
    expect(await recompile()).toBeGreaterThan(0);
    const broken = await shown(id);
    expect(broken.filters.bytecode).toContain('%@c.com%');
    expect(broken.compile_error).toMatch(/^Invalid filter configuration: Cohort 5 does not exist/);
    expect(broken.compile_error).toContain("in the project's filters of test accounts");
    expect(await recompile()).toBe(0);
    await send('PATCH', '', { test_account_filters: accounts('@d.com') });
    await recompile();
    expect(await shown(id)).toMatchObject({ compile_error: null });
    expect((await shown(id)).filters.bytecode).toContain('%@d.com%');
  });

  test('warn of an action that was deleted since, until it is back', async () => {
    const action = await send('POST', 'actions/', { name: 'left', steps: [{ event: 'left' }] });
    const { id } = await send('POST', 'hog_functions/', {
      hog: 'own()',
      filters: { actions: [{ id: action.id, type: 'actions' }] },
    });
    const [missing] = (await shown(id)).warnings;
    await send('PATCH', `actions/${action.id}/`, { deleted: true });
    await recompile();
    expect((await shown(id)).warnings).toEqual([
      missing,
      `The action ${action.id} does not exist in this project, or was deleted. A filter on it matches no event.`,
    ]);
    await send('PATCH', `actions/${action.id}/`, { deleted: false });
    await recompile();
    expect((await shown(id)).warnings).toEqual([missing]);
  });

  test('are not overwritten if somebody changes them meanwhile', async () => {
    const filters = { filter_test_accounts: true };
    const { id } = await send('POST', 'hog_functions/', { hog: 'return 1', filters });
    await send('PATCH', '', { test_account_filters: accounts('@e.com') });
    const { compiler } = deps();
    const slow: FunctionRunDependencies = {
      ...deps(),
      compiler: {
        ...compiler,
        compile: async (projectId, source, signal) => {
          const compiled = await compiler.compile(projectId, source, signal);
          await send('PATCH', `hog_functions/${id}/`, { filters: { events: [{ id: 'mine' }] } });
          return compiled;
        },
      },
    };
    await recompileFunctions(slow, work);
    expect((await shown(id)).filters).toMatchObject({ events: [{ id: 'mine' }] });
  });
});
