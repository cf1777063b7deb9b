import { CONNECT_MILLISECONDS } from '../egress/no-answer.ts';

/**
 * How long Sluice waits for a destination, in milliseconds. What takes longer ends the attempt, so that it does not keep
 * a place of the worker from other exports.
 */
export interface Limits {
  /** Until a connection is ready: the name, TCP, TLS and the login. And for the whole of a small answer. */
  answer: number;
  /** While no byte moves, in the middle of a large body. */
  idle: number;
  /** For what a server does with all the rows that it was sent: a statement of Postgres. */
  statement: number;
}

export const LIMITS: Limits = {
  answer: CONNECT_MILLISECONDS,
  idle: 20_000,
  // As long as a run may go without progress.
  statement: 30 * 60_000,
};

/** A slower line than this does not count as one: the body of a request must get through. */
const BYTES_PER_SECOND = 32 * 1024;
/** The least that a server must manage when it joins the parts of a file. */
const JOINED_PER_SECOND = 8 * 1024 * 1024;

/** The limit for a request with a body of so many bytes, and its small answer. */
export const requestLimit = ({ answer }: Limits, bytes: number): number =>
  answer + Math.ceil((bytes / BYTES_PER_SECOND) * 1000);

/** The limit for putting together a file of so many bytes. Meanwhile a server may be silent. */
export const joiningLimit = ({ answer }: Limits, bytes: number): number =>
  6 * answer + Math.ceil((bytes / JOINED_PER_SECOND) * 1000);

export const limitsOf = ({ limits }: { limits?: Partial<Limits> | undefined }): Limits => ({
  ...LIMITS,
  ...limits,
});

/** What a NoAnswerError says about a server that was waited for. */
export const noAnswerFrom = (who: string) => (limit: string) => `no answer from ${who} within ${limit}`;
