import {
  deleteActivitiesBefore,
  excessOf,
  forgetExcess,
  type LogBounds,
  logsGrownSince,
} from '../db/activity-log.ts';
import { onConnection, paced } from '../db/on-connection.ts';
import { type Pool, transaction } from '../db/pool.ts';
import { deleteProjectRows } from '../db/project-data.ts';
import { listOpenDeletions, markDataDeleted, markSchedulesStopped } from '../db/project-deletions.ts';
import { listUnhashedSecrets, putSecretHashes } from '../db/project-secrets.ts';
import { deleteExpiredRateLimits } from '../db/rate-limits.ts';
import { countSealed } from '../db/sealed-columns.ts';
import { deleteExpiredWizardSessions } from '../db/wizard-sessions.ts';
import type { Keyring } from '../secrets/envelope.ts';
import { resealSecrets } from './encryption-keys.ts';
import { type MaintenanceStep, type Product, projectTables } from './product.ts';
import { CORE_SEALED, openProjectSecret } from './project-secrets.ts';
import { hashToken } from './tokens.ts';
import { parts } from './versions.ts';

const PROJECTS_PER_RUN = 50;
const ROWS_PER_STATEMENT = 5_000;
const ROWS_PER_RUN = 500_000;
/** After each statement, others have as much time for themselves as it took: nobody waits for a deletion. */
const REST = 1;

export interface TenancyUpkeep {
  pool: Pool;
  /** Seals secrets. Undefined: there are no keys. */
  keyring: Keyring | undefined;
  products: readonly Pick<Product, 'tables'>[];
  /** How much of the activity log is kept, of each project and of each organization, and for how many days. */
  activityLog: LogBounds & { days: number };
  /** The part of Temporal that deleted projects need. */
  schedules: {
    /** Deletes a project's schedules and terminates its workflows. */
    stopProject(projectId: number): Promise<unknown>;
  };
}

const expireSessions: MaintenanceStep<TenancyUpkeep> = {
  name: 'expireSessions',
  summary: 'sessions expired',
  /** Deletes expired wizard sessions and rate limits. Returns the number of sessions. */
  async run({ pool }) {
    const sessions = await deleteExpiredWizardSessions(pool);
    await deleteExpiredRateLimits(pool);
    return sessions;
  },
};

const stopDeletedProjects: MaintenanceStep<TenancyUpkeep> = {
  name: 'stopDeletedProjects',
  summary: 'projects stopped',
  /** Deletes the schedules of deleted projects and terminates their workflows. */
  async run({ pool, schedules }, { signal, beat }) {
    const open = (await listOpenDeletions(pool, PROJECTS_PER_RUN)).filter((row) => !row.schedules_stopped_at);
    for (const { project_id } of open) {
      signal.throwIfAborted();
      beat();
      await schedules.stopProject(project_id);
      await markSchedulesStopped(pool, project_id);
    }
    return open.length;
  },
};

const deleteProjectData: MaintenanceStep<TenancyUpkeep> = {
  name: 'deleteProjectData',
  summary: 'rows of deleted projects deleted',
  after: stopDeletedProjects.name,
  /** Deletes the data of deleted projects, in small statements, once their workflows have stopped. */
  async run({ pool, products }, work) {
    const tables = projectTables(products);
    const open = (await listOpenDeletions(pool, PROJECTS_PER_RUN)).filter((row) => row.schedules_stopped_at);
    if (open.length === 0) return 0;
    return onConnection(pool, work, async (client) => {
      let deleted = 0;
      for (const { project_id: projectId } of open) {
        const rows = deleteProjectRows(client, projectId, ROWS_PER_STATEMENT, tables);
        for (let isOver = false; !isOver; ) {
          const some = await paced(work, () => rows.next(), REST);
          isOver = some.done === true;
          deleted += some.value ?? 0;
          if (deleted >= ROWS_PER_RUN) return deleted;
        }
        await markDataDeleted(client, projectId);
      }
      return deleted;
    });
  },
};

const sealSecrets: MaintenanceStep<TenancyUpkeep> = {
  name: 'sealSecrets',
  summary: 'secrets sealed',
  /** Seals the secrets that an older version stored as they are. */
  async run({ pool, keyring }, work) {
    if (!keyring) return 0;
    const counts = await countSealed(pool, CORE_SEALED);
    const open = CORE_SEALED.filter((one) =>
      counts.some(
        ({ column, table, keyId }) => keyId === null && column === one.column && table === one.table,
      ),
    );
    const { sealed } = await resealSecrets(pool, open, keyring, {
      signal: work.signal,
      beat: () => work.beat(),
    });
    return sealed;
  },
};

const hashSecrets: MaintenanceStep<TenancyUpkeep> = {
  name: 'hashSecretTokens',
  summary: 'secret tokens hashed',
  after: sealSecrets.name,
  /** Hashes the secret tokens that an earlier version stored, so that requests with them are known. */
  async run({ pool, keyring }, { signal, beat }) {
    if (!keyring) return 0;
    const open = await listUnhashedSecrets(pool, PROJECTS_PER_RUN);
    for (const project of open) {
      signal.throwIfAborted();
      beat();
      const [token, backup] = [project.secret_api_token, project.secret_api_token_backup].map((stored) => {
        const secret = openProjectSecret(keyring, project.id, stored);
        return secret === null ? null : hashToken(secret);
      }) as [string | null, string | null];
      await putSecretHashes(pool, project, { token, backup });
    }
    return open.length;
  },
};

const DAY = 86_400_000;
const ENTRIES_PER_STATEMENT = 5_000;
/** Logs that have grown within this time are measured. */
const GROWN = 10 * 60_000;

const keepActivityLog: MaintenanceStep<TenancyUpkeep> = {
  name: 'keepActivityLog',
  summary: 'entries of the activity log deleted or shortened',
  /** Deletes entries that are too old, and bounds the log of each project and of each organization. */
  async run({ pool, activityLog: { days, ...bounds } }, { signal, beat }) {
    const now = Date.now();
    let done = 0;
    for (let some = ENTRIES_PER_STATEMENT; some === ENTRIES_PER_STATEMENT; done += some) {
      signal.throwIfAborted();
      beat();
      const before = new Date(now - days * DAY);
      some = await transaction(pool, (client) =>
        deleteActivitiesBefore(client, before, ENTRIES_PER_STATEMENT),
      );
    }
    for (const owner of await logsGrownSince(pool, new Date(now - GROWN))) {
      for (let found = ENTRIES_PER_STATEMENT; found === ENTRIES_PER_STATEMENT; ) {
        const excess = await excessOf(pool, owner, bounds, ENTRIES_PER_STATEMENT);
        found = excess.length;
        for (const part of parts(excess)) {
          signal.throwIfAborted();
          beat();
          await transaction(pool, (client) => forgetExcess(client, part));
        }
        done += found;
      }
      beat();
    }
    return done;
  },
};

export const TENANCY_STEPS = [
  expireSessions,
  keepActivityLog,
  sealSecrets,
  hashSecrets,
  stopDeletedProjects,
  deleteProjectData,
];
