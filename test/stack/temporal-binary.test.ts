import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { isRunning, processStart } from '../../stack/process.ts';
import { findTemporal } from '../../stack/temporal/binary.ts';
import { type TemporalArchive, temporalArchive } from '../../stack/temporal/download.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { LONG } from '../support/rounds.ts';

/** A program that answers like the Temporal CLI, and says which one it is. */
function writeProgram(file: string, which: string): string {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho "temporal version 0.0.0-${which}"\n`);
  chmodSync(file, 0o755);
  return file;
}

const versionOf = (program: string) => execFileSync(program, ['--version'], { encoding: 'utf8' }).trim();

/** A Go that writes down how it was called and "builds" a program into GOBIN. */
function writeGo(folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    path.join(folder, 'go'),
    `#!/bin/sh
echo "$@" CGO_ENABLED=$CGO_ENABLED >> "${folder}/calls"
echo "go: downloading example.com/module v1.0.0" >&2
echo "example.com/module" >&2
printf '#!/bin/sh\\necho "temporal version 0.0.0-built"\\n' > "$GOBIN/temporal"
/bin/chmod 755 "$GOBIN/temporal"
`,
    { mode: 0o755 },
  );
}

interface Served {
  /** What a search downloads. */
  archive: TemporalArchive;
  requests: string[];
}

const servers: http.Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Serves an archive. Without a checksum, it is the one of what is served. */
async function serve(content: Buffer | number, sha256?: string): Promise<Served> {
  const requests: string[] = [];
  const server = http.createServer((request, response) => {
    requests.push(request.url as string);
    if (typeof content === 'number') response.writeHead(content).end();
    else response.end(content);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/archive.tar.gz`;
  return { archive: { url, sha256: sha256 ?? hashOf(content) }, requests };
}

const hashOf = (content: Buffer | number) =>
  createHash('sha256')
    .update(typeof content === 'number' ? '' : content)
    .digest('hex');

function makeArchive(folder: string): Buffer {
  writeProgram(path.join(folder, 'content', 'temporal'), 'downloaded');
  writeFileSync(path.join(folder, 'content', 'LICENSE'), 'words');
  const file = path.join(folder, 'archive.tar.gz');
  execFileSync('tar', ['-czf', file, '-C', path.join(folder, 'content'), 'temporal', 'LICENSE']);
  return readFileSync(file);
}

function machine() {
  const folder = makeDataDir();
  const lines: string[] = [];
  const search = {
    cacheDir: path.join(folder, 'cache'),
    env: { PATH: path.join(folder, 'path') },
    report: (line: string) => void lines.push(line),
  };
  return { folder, lines, search, cached: path.join(search.cacheDir, 'bin', 'temporal') };
}

describe('the Temporal program is looked for', () => {
  test('first on the PATH', async () => {
    const { folder, search, cached } = machine();
    writeProgram(cached, 'cached');
    const installed = writeProgram(path.join(folder, 'path', 'temporal'), 'installed');
    const { archive, requests } = await serve(404);
    expect(await findTemporal({ ...search, archive })).toBe(installed);
    expect(requests).toEqual([]);
  });

  test('then in the cache, also when the one on the PATH is something else', async () => {
    const { folder, search, cached } = machine();
    writeProgram(cached, 'cached');
    const other = writeProgram(path.join(folder, 'path', 'temporal'), 'x');
    writeFileSync(other, '#!/bin/sh\necho I know nothing\n');
    const { archive, requests } = await serve(404);
    expect(await findTemporal({ ...search, archive })).toBe(cached);
    expect(requests).toEqual([]);
  });

  test('then among the releases of Temporal', async () => {
    const { folder, search, cached } = machine();
    writeGo(path.join(folder, 'path'));
    const { archive } = await serve(makeArchive(folder));
    expect(await findTemporal({ ...search, archive })).toBe(cached);
    expect(versionOf(cached)).toBe('temporal version 0.0.0-downloaded');
    expect(readdirSync(path.dirname(cached))).toEqual(['temporal']);
    expect(existsSync(path.join(folder, 'path', 'calls'))).toBe(false);
  });

  const useless: [string, (folder: string) => Buffer | number, RegExp][] = [
    ['does not exist', () => 404, /answered 404/],
    ['is no archive', () => Buffer.from('<html>please sign in</html>'), /tar/i],
    ['is cut off', (folder) => makeArchive(folder).subarray(0, 100), /tar|gzip|unexpected end/i],
  ];
  test.each(useless)('then it is built, when the download %s', async (_name, content, reason) => {
    const { folder, lines, search, cached } = machine();
    writeGo(path.join(folder, 'path'));
    const { archive } = await serve(content(folder));
    expect(await findTemporal({ ...search, archive })).toBe(cached);
    expect(versionOf(cached)).toBe('temporal version 0.0.0-built');
    expect(lines.find((line) => line.includes('the download failed'))).toMatch(reason);
    expect(readFileSync(path.join(folder, 'path', 'calls'), 'utf8')).toBe(
      'install -v github.com/temporalio/cli/cmd/temporal@v1.5.1 CGO_ENABLED=0\n',
    );
    expect(readdirSync(path.dirname(cached))).toEqual(['temporal']);
  });

  test('an archive with another checksum is not unpacked, however well it would work', async () => {
    const { folder, lines, search, cached } = machine();
    writeGo(path.join(folder, 'path'));
    const content = makeArchive(folder);
    const { archive, requests } = await serve(content, hashOf(Buffer.from('another')));
    expect(await findTemporal({ ...search, archive })).toBe(cached);
    expect(versionOf(cached)).toBe('temporal version 0.0.0-built');
    expect(requests).toHaveLength(1);
    expect(lines.join('\n')).toContain(
      `the download failed: the archive has the SHA-256 ${hashOf(content)}, but Sluice expects ${archive.sha256}`,
    );
  });

  test.each([
    ['linux', 'x64', /v1\.5\.1\/temporal_cli_1\.5\.1_linux_amd64\.tar\.gz$/],
    ['linux', 'arm64', /v1\.5\.1\/temporal_cli_1\.5\.1_linux_arm64\.tar\.gz$/],
    ['darwin', 'x64', /darwin_amd64\.tar\.gz$/],
    ['darwin', 'arm64', /darwin_arm64\.tar\.gz$/],
  ] as const)('there is one archive for %s on %s, with its checksum', (platform, arch, name) => {
    const archive = temporalArchive({ platform, arch });
    expect(archive).toEqual({
      url: expect.stringMatching(name),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(archive?.url).toMatch(/^https:/);
    expect(temporalArchive({ platform, arch: 'riscv64' })).toBeUndefined();
  });

  test('and a build that is interrupted ends with everything it started', async () => {
    const { folder, search, cached } = machine();
    const bin = path.join(folder, 'path');
    mkdirSync(bin);
    writeFileSync(path.join(bin, 'go'), `#!/bin/sh\n/bin/sleep 600 &\necho $! > "${bin}/compiler"\nwait\n`, {
      mode: 0o755,
    });
    const { archive } = await serve(404);
    const stop = new AbortController();
    const found = findTemporal({ ...search, archive, signal: stop.signal });
    const failed = expect(found).rejects.toThrow('enough');
    const compiler = () => Number(readFileSync(path.join(bin, 'compiler'), 'utf8'));
    await eventually(async () => existsSync(path.join(bin, 'compiler')) && compiler() > 0);
    stop.abort(new Error('enough'));
    await failed;
    await eventually(async () => !isRunning(compiler()));
    expect(readdirSync(path.dirname(cached))).toEqual([]);
  });

  test('in vain: one sentence says what was tried and what to do', async () => {
    const { search, cached } = machine();
    const { archive } = await serve(404);
    await expect(findTemporal({ ...search, archive })).rejects.toThrow(
      /^Sluice found no Temporal server and could not get one \(the download: 127\.0\.0\.1:\d+ answered 404; the build: there is no Go on this machine\)\. Install the Temporal CLI.*or set TEMPORAL_ADDRESS/,
    );
    expect(readdirSync(path.dirname(cached))).toEqual([]);
  });
});

describe('several starts at once', () => {
  test('fetch it once', async () => {
    const { folder, search } = machine();
    const { archive, requests } = await serve(makeArchive(folder));
    const found = await Promise.all([1, 2, 3].map(() => findTemporal({ ...search, archive })));
    expect(new Set(found).size).toBe(1);
    expect(requests).toHaveLength(1);
  });

  test('a start that was killed while fetching leaves nothing in the way', async () => {
    const { folder, search, cached } = machine();
    mkdirSync(path.join(path.dirname(cached), 'temporal.partial-abcdef'), { recursive: true });
    writeFileSync(path.join(path.dirname(cached), 'temporal.partial-abcdef', 'temporal.tar.gz'), 'half');
    // A number that this very process has, but a beginning that no process has.
    const owner = { pid: process.pid, started: `${processStart(process.pid)}0`, token: 'gone' };
    writeFileSync(`${cached}.lock`, JSON.stringify(owner));
    const { archive } = await serve(makeArchive(folder));
    await findTemporal({ ...search, archive });
    expect(readdirSync(path.dirname(cached))).toEqual(['temporal']);
  });

  test('a program in the cache that does not run is fetched anew', async () => {
    const { folder, search, cached } = machine();
    writeProgram(cached, 'cached');
    writeFileSync(cached, '');
    const { archive } = await serve(makeArchive(folder));
    expect(versionOf(await findTemporal({ ...search, archive }))).toContain('downloaded');
  });
});

const long = LONG ? test : test.skip;
long(
  'the real build works (long: minutes; runs in npm run test:long on machines with Go)',
  async () => {
    const { search, lines } = machine();
    const { archive } = await serve(404);
    const program = await findTemporal({ ...search, env: process.env, archive });
    expect(versionOf(program)).toContain('temporal version');
    expect(lines.some((line) => /\d+ s: \d+ modules downloaded, \d+ packages compiled/.test(line))).toBe(
      true,
    );
  },
  30 * 60_000,
);
