import { sealEventIds } from '../../db/event-id-sealing.ts';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { sealEventWeeks, summarizeOpenWeeks } from '../../db/event-weeks.ts';
import { readPersonWords } from '../../db/person-words.ts';
import { createPool, type Pool, transaction } from '../../db/pool.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { createUser } from '../../tenancy/users.ts';
import { DAY, type Filling, fill, NOW, peopleOf } from '../event-queries/dataset.ts';

export interface Installation {
  /** The database, as the API is told it. */
  serverUrl: string;
  pool: Pool;
  /** The project that has four fifths of all events, and all persons. */
  projectId: number;
  key: string;
  people: number;
  weeks: number;
}

/** Fills an empty database, and does what maintenance has done in an installation that runs. */
export async function makeInstallation({
  url,
  filling,
  isFull,
}: {
  url: string;
  filling: Required<Filling>;
  /** A run before this one has filled it. */
  isFull: boolean;
}): Promise<Installation> {
  const roles = await setUpDatabase({ url });
  const pool = createPool({ url: roles.server, size: 4, name: 'bench' });
  const owner = await addOwner(pool, isFull);
  const installation = {
    ...{ serverUrl: roles.server, pool, people: peopleOf(filling.events), weeks: filling.weeks },
    ...owner,
  };
  if (isFull) return installation;
  let since = performance.now();
  const lap = (what: string) => {
    console.log(`${what}: ${((performance.now() - since) / 1000).toFixed(0)} s`);
    since = performance.now();
  };
  await ensureEventPartitions(pool, new Date(NOW), 1);
  for (let week = 0; week < filling.weeks; week += 1) {
    await ensureEventPartitions(pool, new Date(NOW - week * 7 * DAY), 0);
  }
  await fill(pool, [owner.projectId, owner.projectId + 1], filling);
  lap(`${filling.events} events in ${filling.weeks} weeks, ${installation.people} persons`);
  await pool.query(
    'insert into event_ids (project_id, uuid, timestamp) select project_id, uuid, timestamp from events',
  );
  lap('their ids');
  await pool.query('vacuum analyze');
  const work = { signal: new AbortController().signal, beat: () => undefined };
  lap('vacuum');
  const sealed = await sealEventIds(pool, work);
  lap(`${sealed} ids sealed`);
  lap(`${await sealEventWeeks(pool, work)} weeks sealed`);
  await summarizeOpenWeeks(pool, work);
  for (let left = 1; left > 0; ) left = await readPersonWords(pool, work);
  lap('words of persons');
  await pool.query('vacuum analyze');
  lap('vacuum');
  return installation;
}

/** Adds a project and the key of its owner. */
function addOwner(pool: Pool, isFull: boolean): Promise<{ projectId: number; key: string }> {
  return transaction(pool, async (client) => {
    const { rows } = await client.query(
      'select u.id, min(p.id) as project from users u, projects p group by u.id',
    );
    if (isFull) {
      const { value } = await issuePersonalApiKey(client, {
        ...{ userId: rows[0].id, label: 'bench', scopes: ['*'] },
      });
      return { projectId: rows[0].project, key: value };
    }
    const user = await createUser(client, { email: 'bench@example.com', firstName: 'Bench' });
    if (!user) throw new Error('the address is taken');
    const { project } = await createOrganization(client, { name: 'Bench', userId: user.id });
    const { value: key } = await issuePersonalApiKey(client, {
      ...{ userId: user.id, label: 'bench', scopes: ['*'] },
    });
    return { projectId: project.id, key };
  });
}
