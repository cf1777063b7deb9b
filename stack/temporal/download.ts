import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, rename } from 'node:fs/promises';
import path from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Report } from '../problem.ts';

const execute = promisify(execFile);
/** The newest version that `go install` accepts, so that the download and the build are the same program. */
export const TEMPORAL_VERSION = '1.5.1';
/** Where Temporal publishes the archives of its releases. */
export const DOWNLOAD_URL = 'https://github.com/temporalio/cli/releases/download';
/** The SHA-256 of each archive of this version, as Temporal publishes them. Another archive is not unpacked. */
const CHECKSUMS: Readonly<Record<string, string>> = {
  linux_amd64: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  linux_arm64: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  darwin_amd64: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  darwin_arm64: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
};

/** An archive with the program `temporal`, and the checksum that it must have. */
export interface TemporalArchive {
  url: string;
  sha256: string;
}

/** The archive for a machine. Undefined: Temporal publishes none. */
export function temporalArchive(
  { platform, arch }: Pick<NodeJS.Process, 'platform' | 'arch'>,
  baseUrl = DOWNLOAD_URL,
): TemporalArchive | undefined {
  const name = `${platform}_${arch === 'x64' ? 'amd64' : arch}`;
  const sha256 = CHECKSUMS[name];
  if (!sha256) return undefined;
  const file = `temporal_cli_${TEMPORAL_VERSION}_${name}.tar.gz`;
  return { url: `${baseUrl}/v${TEMPORAL_VERSION}/${file}`, sha256 };
}

const STALL_MILLISECONDS = 30_000;

async function get(url: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new Error(`${new URL(url).host} answered ${response.status}`);
  return response;
}

/** Downloads the Temporal CLI into `folder`. Throws if that fails for any reason. */
export async function downloadTemporal(
  folder: string,
  report: Report,
  { url, sha256 }: TemporalArchive,
): Promise<string> {
  const archive = path.join(folder, 'temporal.tar.gz');
  const received = await fetchTo(url, archive, report);
  if (received !== sha256) {
    throw new Error(`the archive has the SHA-256 ${received}, but Sluice expects ${sha256}`);
  }
  await execute('tar', ['-xzf', archive, '-C', folder, 'temporal']);
  const program = path.join(folder, 'temporal-downloaded');
  await rename(path.join(folder, 'temporal'), program);
  await chmod(program, 0o755);
  return program;
}

/** Downloads a file and returns its SHA-256. Gives up when no byte arrives for a while. There is no limit for the whole, as networks may be slow. */
async function fetchTo(url: string, file: string, report: Report): Promise<string> {
  const hash = createHash('sha256');
  const stalled = new AbortController();
  const onStall = () => stalled.abort(new Error(`no data arrived for ${STALL_MILLISECONDS / 1000} s`));
  let timer = setTimeout(onStall, STALL_MILLISECONDS);
  try {
    const response = await get(url, stalled.signal);
    const total = Number(response.headers.get('content-length') ?? 0);
    const megabytes = (bytes: number) => (bytes / 1_000_000).toFixed(0);
    let received = 0;
    let nextLine = Date.now() + 2_000;
    const progress = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        received += chunk.length;
        hash.update(chunk);
        clearTimeout(timer);
        timer = setTimeout(onStall, STALL_MILLISECONDS);
        if (Date.now() >= nextLine) {
          nextLine = Date.now() + 2_000;
          report(`  ${megabytes(received)}${total ? ` of ${megabytes(total)}` : ''} MB`);
        }
        done(null, chunk);
      },
    });
    await pipeline(
      Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]),
      progress,
      createWriteStream(file),
      { signal: stalled.signal },
    );
    if (total > 0 && received !== total)
      throw new Error(`the download ended after ${received} of ${total} bytes`);
    return hash.digest('hex');
  } finally {
    clearTimeout(timer);
  }
}
