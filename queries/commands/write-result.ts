import type { Pool } from '../../db/pool.ts';
import { type Asker, NoTurnError } from '../../db/turns.ts';
import { refuse } from '../../refusals.ts';
import { encodeResult } from '../reads/encode-result.ts';
import { faultOf, type QueryTime, tooSlow } from '../reads/rows.ts';
import type { ResultPlaces } from '../result-places.ts';
import { type FileForm, QueryError, type QueryRequest } from '../rules/request.ts';
import type { ResultFormat, ResultLimits } from '../rules/result-file.ts';
import { compileFile, type QueryDependencies } from './ask.ts';
import { refusing } from './refusing.ts';

export interface ResultDependencies extends QueryDependencies {
  /** Connections for results as files. A reader sees the rows of one project at a time. */
  resultPool: Pool;
  /** The places of projects at these connections. */
  resultPlaces: ResultPlaces;
  resultLimits: ResultLimits;
}

export interface WriteResultOptions {
  format: ResultFormat;
  form: FileForm;
  /** Takes the bytes in order, and says when it can take more. Their memory is used again then. */
  write(bytes: Buffer): Promise<void>;
}

const RETRY_SECONDS = 10;
/** For whoever's file takes too long: because of the query, or because it is taken slowly. */
const ADVICE =
  'The time in which the client takes the file counts. Choose a shorter range of time, or add conditions.';

/**
 * Writes the whole result of a query as a file, with all its rows, as fast as `write` takes them. Throws a refusal if the query is
 * wrong, or its result takes too much. What was written before is not the whole file then.
 */
export const writeResult = (
  deps: ResultDependencies,
  asker: Asker,
  request: QueryRequest,
  { format, form, write }: WriteResultOptions,
): Promise<void> =>
  refusing(async () => {
    const compiled = await compileFile(deps, asker, request, form);
    const { seconds, bytes: most } = deps.resultLimits;
    const time: QueryTime = { seconds, advice: ADVICE };
    const work = (leaving: AbortSignal, took: (bytes: number) => void) =>
      within(time, [leaving, ...(asker.signal ? [asker.signal] : [])], (signal) => {
        let written = 0;
        return encodeResult(deps.resultPool, { ...asker, signal }, compiled, {
          format,
          timeoutMs: seconds * 1000,
          write: async (bytes) => {
            // Its memory may be used again when it is written.
            const { length } = bytes;
            written += length;
            if (written > most) throw tooLarge(most);
            await write(bytes);
            took(length);
          },
        }).catch((error: unknown) => {
          throw faultOf(error, time);
        });
      });
    return deps.resultPlaces.take(asker, work).catch((error: unknown) => {
      throw error instanceof NoTurnError ? crowded(error) : error;
    });
  });

/** Does work that ends after some time, also while it waits for somebody. */
async function within(
  time: QueryTime,
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(tooSlow(time)), time.seconds * 1000);
  try {
    await work(AbortSignal.any([...signals, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}

const crowded = ({ isOwnFault }: NoTurnError) =>
  isOwnFault
    ? refuse.crowded(
        'Another result of this project is being written as a file. Wait for its end.',
        RETRY_SECONDS,
      )
    : refuse.unavailable(
        'Too many results are being written as files at the moment. Try again.',
        RETRY_SECONDS,
      );

const tooLarge = (bytes: number) =>
  new QueryError(
    'query',
    `The result is larger than ${bytes} bytes. Select fewer columns or rows, or export them.`,
  );
