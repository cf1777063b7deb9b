import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { filesWorldForFile, json, names, write } from './support.ts';

const world = filesWorldForFile();

const HOOK = {
  name: 'Hook',
  inputs_schema: [
    { key: 'url', type: 'string', required: true },
    { key: 'token', type: 'string', secret: true },
    { key: 'kind', type: 'string', required: true, default: 'plain' },
  ],
  inputs: { url: { value: 'https://example.com/{event.event}' } },
  filters: { events: [{ id: 'paid', type: 'events' }] },
  masking: { ttl: 60, hash: '{event.distinct_id}' },
};
const shown = async (id: unknown) => world.ask('GET', `${id}/`);
const list = async () => (await world.ask('GET', '?limit=1000')).results as { id: string; name: string }[];

describe('npx sluice functions push', () => {
  test('creates functions, writes their ids, and has nothing to do the second time', async () => {
    const folder = world.folder();
    write(folder, 'hook', 'return inputs.url', HOOK);
    write(folder, 'page', 'export function onLoad() { const a: number = 1 }', {
      name: 'Page',
      type: 'site_app',
    });
    write(folder, 'mapped', 'return 1', {
      name: 'Mapped',
      mappings: [
        { name: 'One', filters: { events: [{ id: 'a', type: 'events' }] } },
        { inputs_schema: [{ key: 'x', type: 'string' }], inputs: { x: { value: '{event.uuid}' } } },
      ],
    });
    const before = (await list()).length;
    const dry = await world.run(['push', folder, '--dry-run']);
    expect(dry).toMatchObject({ code: 0, stderr: '' });
    expect(dry.stdout).toBe(
      ['hook.hog', 'mapped.hog', 'page.ts']
        .map((one) => `would create  ${path.join(folder, one)}\n`)
        .join(''),
    );
    expect((await list()).length).toBe(before);
    const first = await world.run(['push', folder]);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const id = json(folder, 'hook.json').id;
    expect(first.stdout).toContain(`created    ${path.join(folder, 'hook.hog')}  ${id}\n`);
    expect(await shown(id)).toMatchObject({ name: 'Hook', hog: 'return inputs.url', enabled: false });
    expect(Object.keys(json(folder, 'hook.json'))).toEqual(['id', ...Object.keys(HOOK)]);
    const again = await world.run(['push', folder]);
    expect(again.stdout.match(/^unchanged /gm)).toHaveLength(3);
    expect(await list()).toHaveLength(before + 3);
    // Nothing was sent: the functions are as old as before.
    expect((await shown(id)).version).toBe(1);
  });

  test('changes what has changed, also after a pull of somebody else', async () => {
    const folder = world.folder();
    write(folder, 'one', 'return 1', { name: 'One' });
    write(folder, 'two', 'return 2', { name: 'Two', description: 'kept' });
    await world.run(['push', folder]);
    const { id } = json(folder, 'one.json');
    write(folder, 'one', 'return 11');
    const { stdout, code } = await world.run(['push', folder]);
    expect([code, stdout.match(/^\w+/gm)]).toEqual([0, ['changed', 'unchanged']]);
    expect(await shown(id)).toMatchObject({ hog: 'return 11', name: 'One' });
    write(folder, 'one', 'return 12');
    expect((await world.run(['push', path.join(folder, 'one.json')])).stdout).toMatch(/^changed /);
  });

  test('does not overwrite what somebody else has changed, unless forced', async () => {
    const folder = world.folder();
    write(folder, 'one', 'return 1', { name: 'Shared' });
    write(folder, 'other', 'return 1', { name: 'Not pushed' });
    await world.run(['push', path.join(folder, 'one.hog')]);
    const { id } = json(folder, 'one.json');
    await world.ask('PATCH', `${id}/`, { hog: 'return 7' });
    write(folder, 'one', 'return 2');
    const refused = await world.run(['push', folder]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('one.json: somebody has changed the function on the server since');
    expect(refused.stderr).toContain('Nothing was pushed.');
    expect(await shown(id)).toMatchObject({ hog: 'return 7' });
    expect((await list()).some(({ name }) => name === 'Not pushed')).toBe(false);
    expect((await world.run(['push', folder, '--force'])).code).toBe(0);
    expect(await shown(id)).toMatchObject({ hog: 'return 2' });
  });

  test('does not overwrite a change that comes while it pushes', async () => {
    const folder = world.folder();
    write(folder, 'one', 'return 1', { name: 'Raced' });
    await world.run(['push', folder]);
    const { id } = json(folder, 'one.json');
    write(folder, 'one', 'return 2');
    // Somebody else is faster: the function changes when the change of this command arrives.
    const between = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      if (request.method === 'PATCH') await world.ask('PATCH', `${id}/`, { description: 'mine' });
      const answer = await fetch(world.url + request.url, {
        method: request.method as string,
        headers: {
          authorization: request.headers.authorization as string,
          'content-type': 'application/json',
        },
        ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
      });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    });
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
      const refused = await world.run(['push', folder, '--url', url]);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toContain('somebody has changed the function on the server since');
      expect(await shown(id)).toMatchObject({ hog: 'return 1', description: 'mine' });
    } finally {
      between.closeAllConnections();
      await new Promise((resolve) => between.close(resolve));
    }
  });

  test('asks for --force where nothing says on which version files are based', async () => {
    const { id } = await world.ask('POST', '', { hog: 'return 1', name: 'Known' });
    const folder = world.folder();
    write(folder, 'known', 'return 2', { id, name: 'Known' });
    const refused = await world.run(['push', folder]);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain('nothing says on which version');
    expect((await world.run(['push', folder, '--force'])).code).toBe(0);
    const nameless = world.folder();
    write(nameless, 'known', 'return 3', { name: 'Known' });
    const twice = await world.run(['push', nameless]);
    expect(twice.stderr).toContain(`already has a function of this name and type. Add "id": "${id}"`);
  });

  test('shows file, line and column of what does not compile, and pushes nothing', async () => {
    const folder = world.folder();
    const before = (await list()).length;
    write(folder, 'good', 'return 1', { name: 'Good' });
    write(folder, 'hog', 'let a := 1\nlet x := ;', { name: 'Broken' });
    write(folder, 'site', 'let a: = 1', { name: 'Site', type: 'site_app' });
    write(folder, 'template', 'return 1', {
      ...{ name: 'Template', inputs_schema: [{ key: 'a', type: 'string' }] },
      inputs: { a: { value: 'x {event.} y' } },
    });
    write(folder, 'filter', 'return 1', {
      ...{ name: 'Filter', enabled: true },
      filters: { properties: [{ key: 'a', type: 'event', operator: 'regex', value: '(' }] },
    });
    const { code, stdout, stderr } = await world.run(['push', folder]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(
      `${path.join(folder, 'hog.hog')}:2:10: Hog code has errors. Unexpected ';'\n    let x := ;\n             ^\n`,
    );
    expect(stderr).toMatch(/site\.ts:1:\d+: Error in TypeScript code/);
    expect(stderr).toContain(`${path.join(folder, 'template.json')}: inputs.a: Invalid template: `);
    expect(stderr).toMatch(/filter\.json: filters: Invalid filter configuration/);
    expect(await list()).toHaveLength(before);
  });

  test.each<[what: string, definition: object | string, message: RegExp]>([
    ['is no JSON', '{\n  "name": "x",,\n}', /bad\.json:2:15: This is not JSON/],
    ['has a field that functions do not have', { name: 'x', filter: {} }, /bad\.json: .*"filter"/],
    ['has an input that nothing asks for', { name: 'x', inputs: { utl: { value: 1 } } }, /inputs\.utl: /],
    ['has no name', { type: 'destination' }, /bad\.json: name: /],
    [
      'gives a value and a variable',
      { name: 'x', inputs_schema: [{ key: 'a', type: 'string' }], inputs: { a: { value: 1, env: 'A' } } },
      /inputs\.a: Give one of/,
    ],
    [
      'names a function that the project does not have',
      { name: 'x', id: '018f0000-0000-7000-8000-000000000001' },
      /no function with the id/,
    ],
    ['has another ending', '{"name":"x","type":"site_app"}', /bad\.hog: .* type site_app ends with \.ts/],
  ])('refuses a definition that %s', async (_what, definition, message) => {
    const folder = world.folder();
    write(folder, 'bad', 'return 1', typeof definition === 'string' ? {} : definition);
    if (typeof definition === 'string') writeFileSync(path.join(folder, 'bad.json'), definition);
    const { code, stderr } = await world.run(['push', folder, '--dry-run']);
    expect(stderr).toMatch(message);
    expect(code).toBe(1);
  });
});

describe('secrets of functions in files', () => {
  const definition = { ...HOOK, name: 'Secret', inputs: { ...HOOK.inputs, token: { env: 'HOOK_TOKEN' } } };

  test('come from the environment; nothing is pushed without them', async () => {
    const folder = world.folder();
    write(folder, 'hook', "return inputs.token = 'tok-5550'", definition);
    const without = await world.run(['push', folder]);
    expect(without).toMatchObject({ code: 1, stdout: '' });
    expect(without.stderr).toContain('inputs.token: the variable HOOK_TOKEN is not set.');
    const env = { HOOK_TOKEN: 'tok-5550' };
    const pushed = await world.run(['push', folder], env);
    expect(pushed.code).toBe(0);
    expect(
      JSON.stringify([pushed, names(folder).map((one) => json(folder, one.replace('.hog', '.json')))]),
    ).not.toContain('tok-5550');
    const { id } = json(folder, 'hook.json');
    expect((await shown(id)).inputs).toMatchObject({ token: { secret: true } });
    const globals = { event: { event: 'paid', distinct_id: 'a', properties: {} } };
    const tried = await world.ask('POST', `${id}/invocations/`, { configuration: {}, globals });
    expect(tried).toMatchObject({ status: 'success', result: true });
    // A later push sends the value again: nobody can tell whether it is another one.
    expect((await world.run(['push', folder], { HOOK_TOKEN: 'tok-other' })).stdout).toMatch(
      /^changed .*with secrets\n$/,
    );
    expect(await world.ask('POST', `${id}/invocations/`, { configuration: {}, globals })).toMatchObject({
      result: false,
    });
  });

  test('stay as they are where a file says so', async () => {
    const folder = world.folder();
    write(folder, 'kept', 'return 1', { ...definition, name: 'Kept' });
    await world.run(['push', folder], { HOOK_TOKEN: 'tok-kept' });
    const { id } = json(folder, 'kept.json');
    write(folder, 'kept', "return inputs.token = 'tok-kept'", {
      ...{ ...HOOK, id, name: 'Kept' },
      inputs: { ...HOOK.inputs, token: { secret: true } },
    });
    expect((await world.run(['push', folder])).stdout).toMatch(/^changed /);
    const globals = { event: { event: 'paid', distinct_id: 'a', properties: {} } };
    expect(await world.ask('POST', `${id}/invocations/`, { configuration: {}, globals })).toMatchObject({
      result: true,
    });
    expect((await world.run(['push', folder])).stdout).toMatch(/^unchanged /);
  });
});
