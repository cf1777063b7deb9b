import { describe, expect, test } from '@jest/globals';
import { apiForFile } from '../support/api.ts';

const api = apiForFile();

describe('everything at once on one organization', () => {
  test.each([1, 2, 3, 4, 5])(
    'ends without a fault of the server, and with one owner and whole rows (%d)',
    async (nth) => {
      const owner = await api.createTenant('Storm');
      const admin = await api.createMember(owner, 'Admin', 8);
      const member = await api.createMember(owner, 'Member', 1);
      const place = `/api/organizations/${owner.organizationId}/`;
      const spare = (await api.request(owner, 'POST', `${place}projects/`, { name: 'Spare' })).json();
      const requests = Array.from({ length: 6 }, (_, n) => [
        api.request(owner, 'PATCH', place, { name: `Name ${n}` }),
        api.request(admin, 'POST', `${place}projects/`, { name: `Project ${n}` }),
        api.request(admin, 'POST', '/api/organizations/', { name: `Same name ${nth}` }),
        api.request(admin, 'POST', '/api/personal_api_keys/', { label: `Key ${n}`, scopes: ['user:read'] }),

        api.request(admin, 'POST', '/api/personal_api_keys/', { label: `Key ${n}`, scopes: ['user:read'] }),
        api.request(admin, 'PATCH', '/api/users/@me/', {
          set_current_team: n % 2 ? owner.projectId : admin.projectId,
        }),
        api.request(owner, 'PATCH', `${place}members/${n % 2 ? admin.userUuid : member.userUuid}/`, {
          level: n % 3 ? 8 : 15,
        }),
        api.request(admin, 'PATCH', `${place}members/${owner.userUuid}/`, { level: 15 }),
        api.request(member, 'DELETE', `${place}members/${member.userUuid}/`),
        api.request(owner, 'DELETE', `/api/projects/${spare.id}/`),
        api.request(owner, 'POST', `${place}environments_rollback/`, { [spare.id]: owner.projectId }),
        api.request(admin, 'PATCH', `/api/projects/${owner.projectId}/rotate_secret_token/`),
        api.request(admin, 'GET', `${place}activity_log/`),
      ]).flat();
      const answers = await Promise.all(requests);
      const faults = answers.filter((one) => one.statusCode >= 500);
      expect(faults.map((one) => [one.statusCode, one.body])).toEqual([]);
      const { rows } = await api.pool.query(
        `select count(*) filter (where level = 15)::int as owners from organization_memberships where organization_id = $1`,
        [owner.organizationId],
      );
      expect(rows).toEqual([{ owners: 1 }]);
      const keys = await api.pool.query(
        'select count(*)::int as count from personal_api_keys where user_id = $1',
        [admin.userId],
      );
      expect(keys.rows).toEqual([{ count: 10 }]);
      const slugs = await api.pool.query('select slug from organizations where name = $1', [
        `Same name ${nth}`,
      ]);
      expect(new Set(slugs.rows.map((row) => row.slug)).size).toBe(6);
    },
  );
});
