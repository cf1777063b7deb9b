import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll } from '@jest/globals';
import { loadConfig } from '../../config.ts';
import { tryLock } from '../../stack/file-lock.ts';
import { goInstall } from '../../stack/go-install.ts';
import { reservePort } from './ports.ts';

const VERSION = '1.8.0';
const MODULE = `github.com/versity/versitygw/cmd/versitygw@v${VERSION}`;
/** Building it takes about three minutes on two cores, once per machine. */
const BUILD_MILLISECONDS = 1_200_000;

const execute = promisify(execFile);

async function works(program: string): Promise<boolean> {
  return execute(program, ['--version'], { timeout: 20_000 }).then(
    () => true,
    () => false,
  );
}

/** The S3 server that the tests run against, built into the cache directory whole or not at all, by one process. */
async function findVersitygw(): Promise<string> {
  const { SLUICE_CACHE_DIR } = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR });
  const folder = path.join(SLUICE_CACHE_DIR, 'bin');
  const cached = path.join(folder, `versitygw-${VERSION}`);
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  for (;;) {
    if (existsSync(cached) && (await works(cached))) return cached;
    mkdirSync(folder, { recursive: true });
    const { lock } = tryLock(`${cached}.lock`);
    if (!lock) {
      await pause(200);
      continue;
    }
    try {
      if (existsSync(cached) && (await works(cached))) return cached;
      for (const entry of await readdir(folder)) {
        if (entry.startsWith('versitygw.partial-')) await rm(path.join(folder, entry), { recursive: true });
      }
      report('Building versitygw, the S3 server of the tests, with Go (once, about 3 minutes on 2 cores) …');
      const partial = await mkdtemp(path.join(folder, 'versitygw.partial-'));
      try {
        const options = { module: MODULE, program: 'versitygw', folder: partial, report, env: process.env };
        await rename(await goInstall(options), cached);
      } finally {
        await rm(partial, { recursive: true, force: true });
      }
    } finally {
      lock.release();
    }
  }
}

export interface S3Server {
  endpoint: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** A client of the test's own, to see what is there. */
  client: S3Client;
  createBucket(): Promise<string>;
}

let buckets = 0;

/** A real S3 server for the tests of one file, with a directory of its own; both are gone afterwards. */
export function s3ForFile(): S3Server {
  const server = {
    accessKeyId: 'test-access-key',
    secretAccessKey: 'test-secret-key-9d2f',
    async createBucket() {
      buckets += 1;
      const name = `bucket-${process.pid}-${buckets}`;
      await server.client.send(new CreateBucketCommand({ Bucket: name }));
      return name;
    },
  } as S3Server;
  let stop = async () => {};
  beforeAll(async () => {
    const program = await findVersitygw();
    const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-s3-'));
    mkdirSync(path.join(folder, 'data'));
    const port = await reservePort();
    // When the channel closes, however the test process ended, the shell ends the server and removes its files.
    const script =
      '"$@" & server=$!; cat >/dev/null; exec 2>/dev/null; kill -9 $server; wait $server; rm -rf "$FOLDER"';
    const child = spawn(
      'sh',
      [
        '-c',
        script,
        'sh',
        program,
        '--port',
        `127.0.0.1:${port}`,
        '--quiet',
        '--keep-alive',
        'posix',
        `${folder}/data`,
      ],
      {
        env: {
          PATH: process.env.PATH,
          FOLDER: folder,
          ROOT_ACCESS_KEY: server.accessKeyId,
          ROOT_SECRET_KEY: server.secretAccessKey,
        },
        stdio: ['pipe', 'ignore', 'inherit'],
        detached: true,
      },
    );
    stop = async () => {
      server.client?.destroy();
      const gone = once(child, 'exit');
      child.stdin.end();
      await gone;
    };
    server.endpoint = `http://127.0.0.1:${port}`;
    server.client = new S3Client({
      endpoint: server.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: { accessKeyId: server.accessKeyId, secretAccessKey: server.secretAccessKey },
    });
    while (
      !(await fetch(server.endpoint).then(
        () => true,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error('versitygw ended; what it said stands above');
      await pause(20);
    }
  }, BUILD_MILLISECONDS);
  afterAll(() => stop());
  return server;
}
