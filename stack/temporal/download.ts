import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { chmod, rename } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import type { Report } from '../problem.ts';

const execute = promisify(execFile);
/** Where the Temporal SDK itself downloads the server for its tests. */
export const DOWNLOAD_URL = 'https://temporal.download';
const ANSWER_MILLISECONDS = 15_000;
const STALL_MILLISECONDS = 30_000;

interface ArchiveInfo {
  archiveUrl: string;
  fileToExtract: string;
}

function infoUrl(baseUrl: string): string {
  const sdk = createRequire(import.meta.url)('@temporalio/common/package.json') as { version: string };
  const query = new URLSearchParams({
    arch: process.arch === 'arm64' ? 'arm64' : 'amd64',
    platform: process.platform === 'darwin' ? 'darwin' : 'linux',
    format: 'tar.gz',
    'sdk-name': 'sdk-typescript',
    'sdk-version': sdk.version,
  });
  return `${baseUrl}/cli/default?${query}`;
}

async function get(url: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new Error(`${new URL(url).host} answered ${response.status}`);
  return response;
}

/** Downloads the Temporal CLI into `folder`. Throws if that fails for any reason. */
export async function downloadTemporal(folder: string, report: Report, baseUrl: string): Promise<string> {
  const answer = await get(infoUrl(baseUrl), AbortSignal.timeout(ANSWER_MILLISECONDS));
  const info = (await answer.json()) as ArchiveInfo;
  const member = info.fileToExtract;
  if (
    typeof member !== 'string' ||
    !/^[\w.-]+(\/[\w.-]+)*$/.test(member) ||
    member.split('/').includes('..')
  ) {
    throw new Error(`the file to extract has an unusable name, ${JSON.stringify(member)}`);
  }
  const archive = path.join(folder, 'temporal.tar.gz');
  await fetchTo(info.archiveUrl, archive, report);
  await execute('tar', ['-xzf', archive, '-C', folder, member]);
  const program = path.join(folder, 'temporal-downloaded');
  await rename(path.join(folder, member), program);
  await chmod(program, 0o755);
  return program;
}

/** Downloads a file. Gives up when no byte arrives for a while. There is no limit for the whole, as networks may be slow. */
async function fetchTo(url: string, file: string, report: Report): Promise<void> {
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
  } finally {
    clearTimeout(timer);
  }
}
