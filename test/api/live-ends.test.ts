import { describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { type Heard, named, streamsForFile } from '../support/live.ts';

const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: '0' }, { liveBounds: { beat: 100 } });
const { Anna: anna, Otto: otto } = tenantsForFile(api, 'Anna', 'Otto');
const { listen, store, beside } = streamsForFile(api);

describe('a stream ends', () => {
  test('after its time, and the next one goes on', () =>
    beside({ bounds: { longest: 2_000 } }, async (host, metric) => {
      const query = { where: "event like 'turn %'" };
      const seen: string[] = [];
      let lastId: string | undefined;
      let turns = 0;
      await eventually(async () => {
        const stream = await listen(anna, { query, lastId }, host);
        if (turns < 3) await store(anna, ...named(`turn ${turns}`));
        turns += 1;
        await eventually(async () => stream.isOver());
        expect(stream.isWhole()).toBe(true);
        seen.push(...stream.events());
        lastId = stream.lastId();
        return seen.length >= 3;
      });
      expect(seen).toEqual(['turn 0', 'turn 1', 'turn 2']);
      await eventually(async () => (await metric('sluice_live_listeners')) === 0);
    }));

  test.each<[string, (member: Tenant) => Promise<unknown>]>([
    [
      'its key is deleted',
      ({ keyId }) => api.pool.query('delete from personal_api_keys where id = $1', [keyId]),
    ],
    [
      'its key lost the scope',
      ({ keyId }) =>
        api.pool.query(`update personal_api_keys set scopes = '{insight:read}' where id = $1`, [keyId]),
    ],
    [
      'its user left the organization',
      ({ userId }) =>
        api.pool.query('delete from organization_memberships where user_id = $1 and organization_id = $2', [
          userId,
          anna.organizationId,
        ]),
    ],
  ])('when %s', async (_, change) => {
    const member = await api.createMember(anna, 'Mia', 1);
    const [stream, other] = [await listen(member.key, { project: anna.projectId }), await listen(anna)];
    expect(stream.status).toBe(200);
    await change(member);
    await eventually(async () => stream.isOver());
    expect([stream.isWhole(), other.isOver()]).toEqual([true, false]);
  });

  test('when its project is deleted', async () => {
    const gone = await api.createTenant('Gone');
    const stream = await listen(gone);
    expect(stream.status).toBe(200);
    expect((await api.request(gone, 'DELETE', `/api/projects/${gone.projectId}/`)).statusCode).toBe(204);
    await eventually(async () => stream.isOver());
    expect(stream.isWhole()).toBe(true);
  });

  test('when the server does, whole, and the server waits for none', async () => {
    const app = await api.rebuild({});
    const host = await app.listen({ port: 0, host: '127.0.0.1' });
    const streams = [await listen(anna, {}, host), await listen(anna, {}, host)];
    await app.close();
    await eventually(async () => streams.every((one) => one.isOver()));
    expect(streams.map((one) => one.isWhole())).toEqual([true, true]);
  });
});

describe('streams', () => {
  test('are so many of a project, and of all', () =>
    beside({ bounds: { perProject: 2, listeners: 3 } }, async (host) => {
      const [first] = [await listen(anna, {}, host), await listen(anna, {}, host)];
      const third = await listen(anna, {}, host);
      expect([third.status, third.headers['retry-after']]).toEqual([429, '10']);
      await listen(otto, {}, host);
      const last = await listen(otto, {}, host);
      expect([last.status, last.headers['retry-after']]).toEqual([429, '10']);
      first?.leave();
      await eventually(async () => (await listen(otto, {}, host)).status === 200);
    }));

  test('of somebody with many projects leave places for others', async () => {
    const greedy = await api.createTenant('Greedy');
    const { rows } = await api.pool.query<{ id: number }>(
      `insert into projects (uuid, organization_id, name, api_token)
       select gen_random_uuid(), $1, 'P' || n, 'phc_' || gen_random_uuid() from generate_series(1, 3) as n returning id`,
      [greedy.organizationId],
    );
    await beside({ bounds: { perProject: 2, listeners: 6 } }, async (host) => {
      const theirs: Heard[] = [];
      for (const { id } of [...rows, ...rows]) theirs.push(await listen(greedy, { project: id }, host));
      expect(theirs.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
      const mine = [await listen(otto, {}, host), await listen(otto, {}, host)];
      expect(mine.map(({ status }) => status)).toEqual([200, 200]);
      await eventually(async () => theirs.filter((one) => one.isOver()).length === 2);
      // They ended as streams end, the oldest first, and do not come back at the cost of others.
      expect(theirs.map((one) => one.isOver())).toEqual([true, true, false, false, false, false]);
      expect(theirs[0]?.isWhole()).toBe(true);
      const again = await listen(
        greedy,
        { project: rows[0]?.id as number, lastId: theirs[0]?.lastId() },
        host,
      );
      expect(again.status).toBe(429);
      expect(mine.some((one) => one.isOver())).toBe(false);
      await store(otto, ...named('heard'));
      await eventually(async () => mine.every((one) => one.events().includes('heard')));
    });
  });

  test('take no turn of their user', () =>
    beside({ config: { ...api.config, SLUICE_REQUESTS_AT_ONCE: 1 } }, async (host) => {
      const streams = [await listen(anna, {}, host), await listen(anna, {}, host)];
      expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    }));
});
