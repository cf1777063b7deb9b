import { type Backend, makeWay, memoryOf } from '../db/backend-priority.ts';
import type { Pool } from '../db/pool.ts';
import { TRANSACTION_SECONDS } from '../db/roles/sql-access.ts';
import { endFaultySessions, endSession, type SessionFault, type SqlSession } from '../db/sql-logins.ts';
import type { Logger } from '../telemetry/logger.ts';
import { Quiet } from '../telemetry/quiet.ts';

/** Milliseconds between two looks at the sessions. */
const EVERY = 2_000;
/** Postgres has a limit of its own from version 17 on, which tells the person why. It comes first. */
const GRACE_SECONDS = 30;
const MOST_BYTES = 1024 ** 3;

const WORDS: Readonly<Record<SessionFault, string>> = {
  closed: 'the login was closed',
  lock: 'it takes an advisory lock',
  transaction: 'its transaction is too old',
  blocker: 'it keeps upkeep of a table waiting',
  memory: 'it takes too much memory',
};

export interface SqlKeeperOptions {
  /** Its user must inherit the logins, as the server does. */
  pool: Pool;
  logger: Pick<Logger, 'warn'>;
  every?: number;
  mostSeconds?: number;
  mostBytes?: number;
}

export interface SqlKeeper {
  start(): void;
  close(): Promise<void>;
}

/**
 * Looks after the sessions of people with a SQL client, who can change what Postgres allows them by default. It ends
 * sessions that would harm others, and lets them make way for requests where Postgres runs on the same machine. Every API
 * process does so.
 */
export function createSqlKeeper({
  pool,
  logger,
  every = EVERY,
  mostSeconds = TRANSACTION_SECONDS + GRACE_SECONDS,
  mostBytes = MOST_BYTES,
}: SqlKeeperOptions): SqlKeeper {
  const quiet = new Quiet();
  /** The sessions whose priority was lowered. */
  let lowered = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> | undefined;

  const tell = ({ role, pid }: SqlSession, fault: SessionFault) =>
    logger.warn({ role, pid }, `a session of a SQL client was ended: ${WORDS[fault]}`);

  async function lookAt(session: SqlSession, backend: Backend): Promise<void> {
    const name = `${session.pid} ${session.since}`;
    if (!lowered.has(name)) {
      lowered.add(name);
      await makeWay(backend);
    }
    const bytes = await memoryOf(backend);
    if (bytes === undefined || bytes <= mostBytes) return;
    await endSession(pool, session);
    tell(session, 'memory');
  }

  async function look(): Promise<void> {
    const sessions = await endFaultySessions(pool, mostSeconds);
    const open = new Set(sessions.map(({ pid, since }) => `${pid} ${since}`));
    lowered = new Set([...lowered].filter((one) => open.has(one)));
    for (const session of sessions) {
      if (session.fault !== null) tell(session, session.fault);
      else if (session.port !== null) await lookAt(session, { pid: session.pid, port: session.port });
    }
  }

  return {
    start() {
      timer = setInterval(() => {
        round ??= look()
          .catch((error) =>
            quiet.tell((untold) =>
              logger.warn({ err: error, untold }, 'the sessions of SQL clients could not be looked at'),
            ),
          )
          .finally(() => {
            round = undefined;
          });
      }, every).unref();
    },
    async close() {
      clearInterval(timer);
      await round;
    },
  };
}
