import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { fileStem, freeStem } from '../../../cli/functions/names.ts';
import { Remote } from '../../../cli/functions/remote.ts';
import { filesWorldForFile, json, names, read, write } from './support.ts';

const world = filesWorldForFile();
let hookId: string;

beforeAll(async () => {
  const made = await world.ask('POST', '', {
    name: 'Tell the shop',
    hog: 'fetch(inputs.url)',
    enabled: true,
    inputs_schema: [
      { key: 'token', type: 'string', secret: true },
      { key: 'url', type: 'string', required: true },
    ],
    inputs: { url: { value: 'https://example.com/{inputs.token}' }, token: { value: 'tok-77125' } },
    filters: { events: [{ id: 'paid', type: 'events' }] },
    masking: { ttl: 60, hash: '{event.uuid}' },
  });
  hookId = made.id as string;
});

describe('npx sluice functions pull', () => {
  test('writes what a function is made of, without secrets and without what is computed', async () => {
    const folder = path.join(world.folder(), 'functions');
    const pulled = await world.run(['pull', folder]);
    expect(pulled).toEqual({
      code: 0,
      stdout: `new        ${path.join(folder, 'tell-the-shop.hog')}\n`,
      stderr: '',
    });
    expect(read(folder, 'tell-the-shop.hog')).toBe('fetch(inputs.url)');
    const written = read(folder, 'tell-the-shop.json');
    expect(JSON.parse(written)).toEqual({
      ...{ id: hookId, name: 'Tell the shop', type: 'destination', enabled: true },
      filters: { events: [{ id: 'paid', type: 'events' }] },
      inputs_schema: [
        { type: 'string', key: 'token', secret: true },
        { type: 'string', key: 'url', required: true },
      ],
      inputs: { token: { secret: true }, url: { value: 'https://example.com/{inputs.token}' } },
      masking: { ttl: 60, hash: '{event.uuid}' },
    });
    expect(
      names(folder)
        .map((one) => read(folder, one))
        .join(),
    ).not.toContain('tok-77125');
    // Inputs stand in the order of their schema, whatever the order of their evaluation.
    expect(Object.keys(JSON.parse(written).inputs)).toEqual(['token', 'url']);
    const again = await world.run(['pull', folder]);
    expect(again.stdout).toMatch(/^unchanged /);
    expect(read(folder, 'tell-the-shop.json')).toBe(written);
    expect((await world.run(['push', folder])).stdout).toMatch(/^unchanged /);
  });

  test('brings changes of the server, and keeps changes that were made here', async () => {
    const folder = world.folder();
    const { id } = await world.ask('POST', '', { name: 'Both', hog: 'return 1' });
    const own = ['--id', id as string];
    await world.run(['pull', folder, ...own]);
    await world.ask('PATCH', `${id}/`, { hog: 'return 2', name: 'Both, renamed' });
    expect((await world.run(['pull', folder, ...own])).stdout).toMatch(/^updated .*both\.hog\n$/);
    expect([read(folder, 'both.hog'), json(folder, 'both.json').name]).toEqual(['return 2', 'Both, renamed']);
    writeFileSync(path.join(folder, 'both.hog'), 'return 3');
    await world.ask('PATCH', `${id}/`, { hog: 'return 4' });
    const refused = await world.run(['pull', folder, ...own]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('both was changed here, and the server has something else.');
    expect(read(folder, 'both.hog')).toBe('return 3');
    expect((await world.run(['pull', folder, ...own, '--force'])).code).toBe(0);
    expect(read(folder, 'both.hog')).toBe('return 4');
    await world.ask('PATCH', `${id}/`, { deleted: true });
    const gone = await world.run(['pull', folder, '--id', hookId]);
    expect(gone.stderr).toContain(`both.hog: the project has no function with the id ${id}.`);
    expect((await world.run(['pull', folder, ...own])).stderr).toContain('has no function with the id');
  });

  test('keeps the names of variables, and another layout of the same definition', async () => {
    const folder = world.folder();
    await world.run(['pull', folder, '--id', hookId]);
    const text = { ...json(folder, 'tell-the-shop.json') };
    (text.inputs as Record<string, unknown>).token = { env: 'SHOP_TOKEN' };
    writeFileSync(path.join(folder, 'tell-the-shop.json'), JSON.stringify(text));
    expect((await world.run(['pull', folder, '--id', hookId])).stdout).toMatch(/^unchanged /);
    await world.ask('PATCH', `${hookId}/`, { description: 'by somebody' });
    await world.run(['pull', folder, '--id', hookId, '--force']);
    expect(json(folder, 'tell-the-shop.json')).toMatchObject({
      description: 'by somebody',
      inputs: { token: { env: 'SHOP_TOKEN' } },
    });
  });

  test('writes nowhere else, whatever functions are called, and replaces no other file', async () => {
    const folder = world.folder();
    const outside = path.join(world.folder(), 'outside.txt');
    writeFileSync(outside, 'precious');
    writeFileSync(path.join(folder, 'package.json'), '{"name":"app"}');
    symlinkSync(outside, path.join(folder, 'linked.hog'));
    const given = [
      '../../x',
      '/etc/passwd',
      'CON',
      '..',
      '   ',
      'package',
      'linked',
      'Twin',
      'twin',
      'é'.repeat(400),
      '…',
      'a\\b\n"c',
    ];
    const ids: string[] = [];
    for (const name of given) ids.push((await world.ask('POST', '', { name, hog: 'return 1' })).id as string);
    const { code, stdout } = await world.run(['pull', folder, ...ids.flatMap((id) => ['--id', id])]);
    expect(code).toBe(0);
    const written = stdout
      .trim()
      .split('\n')
      .map((line) => path.relative(folder, line.slice(11)));
    expect(written).toHaveLength(given.length);
    expect(new Set(written.map((one) => one.toLowerCase())).size).toBe(given.length);
    for (const one of written) expect(one).toMatch(/^[\p{L}\p{N}][\p{L}\p{N}-]{0,98}\.hog$/u);
    expect(written).toEqual(
      expect.arrayContaining(['x.hog', 'etc-passwd.hog', 'function-con.hog', 'twin.hog', 'a-b-c.hog']),
    );
    expect(read(folder, 'package.json')).toBe('{"name":"app"}');
    expect(readFileSync(outside, 'utf8')).toBe('precious');
    expect((await world.run(['push', folder])).stdout.match(/^unchanged /gm)).toHaveLength(given.length);
  });
});

describe('names of files', () => {
  test.each([
    ['Tell the shop!', 'tell-the-shop'],
    ['../../etc/passwd', 'etc-passwd'],
    ['\u0000', 'function'],
    [null, 'function'],
    ['nul', 'function-nul'],
    ['COM1', 'function-com1'],
    ['.git', 'git'],
    ['写入 表', '写入-表'],
    ['a\ud800b', 'a-b'],
    ['x'.repeat(400), 'x'.repeat(60)],
  ])('%j becomes %s', (name, stem) => {
    expect(fileStem(name)).toBe(stem);
  });

  test('that are taken get the end of the id', () => {
    const id = '018f0000-0000-7000-8000-00000000abcd';
    expect(freeStem('A', id, (one) => one === 'a')).toBe('a-00000000abcd');
    expect(freeStem('A', id, (one) => one.length < 20)).toBe(`a-${id}`);
  });
});

/** Answers each request with the function's JSON, after the work is done. */
async function served<T>(answer: (url: string) => unknown, work: (url: string) => Promise<T>): Promise<T> {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answer(request.url ?? '')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

describe('a list of many functions', () => {
  const all = ['a', 'b', 'c'].map((id) => ({ id }));

  test('is read page by page, also if pages end early', async () => {
    const asked: string[] = [];
    const found = await served(
      (url) => {
        asked.push(url);
        const offset = Number(new URL(url, 'http://x').searchParams.get('offset'));
        return { count: 3, results: all.toReversed().slice(offset, offset + 2) };
      },
      (url) => new Remote({ url, key: 'k', project: '1' }).all(),
    );
    expect(found).toEqual(all);
    expect(asked).toHaveLength(2);
  });

  test('is read again if a change has moved a function to another page', async () => {
    let turn = 0;
    const pages = [[all[0], all[1]], [all[1]], [all[0], all[1]], [all[2]]];
    const found = await served(
      () => ({ count: 3, results: pages[turn++] }),
      (url) => new Remote({ url, key: 'k', project: '1' }).all(),
    );
    expect(found).toEqual(all);
  });
});

describe('the access of the commands', () => {
  const none = { SLUICE_URL: '', SLUICE_API_KEY: '', SLUICE_PROJECT_ID: '' };

  test.each<[what: string, args: string[], env: Record<string, string>, message: string]>([
    ['no URL', [], { SLUICE_URL: '' }, 'set SLUICE_URL, or use --url'],
    ['no key', [], { SLUICE_API_KEY: '' }, 'SLUICE_API_KEY'],
    ['no project', [], { SLUICE_PROJECT_ID: '' }, 'SLUICE_PROJECT_ID'],
    ['another protocol', ['--url', 'ftp://x'], {}, 'http://'],
    ['a URL with a password', ['--url', 'http://a:b@x'], {}, 'no user, password'],
    ['a project that is none', ['--project', '../2'], {}, '"../2" is not the id'],
    ['an unknown option', ['--nope'], {}, "unknown option '--nope'"],
  ])('refuses %s as wrong use', async (_what, args, env, message) => {
    const { code, stderr } = await world.run(['pull', world.folder(), ...args], env);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test('takes options in the place of variables', async () => {
    const { key, projectId } = world.tenant;
    const args = ['--url', world.url, '--key', key, '--project', String(projectId)];
    expect((await world.run(['pull', world.folder(), ...args], none)).code).toBe(0);
  });

  test('never shows the key', async () => {
    const wrong = 'phx_wrong-key-889123';
    for (const args of [
      ['--url', world.url],
      ['--url', 'http://127.0.0.1:1'],
      ['--url', `${world.url}/nowhere`],
    ]) {
      const { code, stdout, stderr } = await world.run(['pull', world.folder(), ...args, '--key', wrong]);
      expect(code).toBe(1);
      expect(stdout + stderr).not.toContain(wrong);
      expect(stderr).toContain(args[1] as string);
    }
  });
});

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('a key that is an option leaves the list of processes', async () => {
  const key = 'phx_in-the-list-of-processes';
  let line = '';
  let child: ChildProcess;
  const gone = await served(
    () => {
      line = readFileSync(`/proc/${child.pid}/cmdline`, 'utf8');
      return { count: 0, results: [] };
    },
    (url) => {
      const args = ['functions', 'pull', world.folder(), '--url', url, '--project', '1', '--key', key];
      child = spawn(process.execPath, ['cli/main.ts', ...args], { stdio: 'ignore' });
      return once(child, 'close');
    },
  );
  expect(gone).toEqual([0, null]);
  expect(line).toContain('sluice functions');
  expect(line).not.toContain(key);
});

test('a program without a definition is no function of a folder', async () => {
  const folder = world.folder();
  write(folder, 'lonely', 'return 1');
  const { code, stderr } = await world.run(['push', folder]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('lonely.hog has no definition')]);
  expect((await world.run(['push', path.join(folder, 'none.hog')])).code).toBe(2);
});
