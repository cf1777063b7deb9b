import { beforeAll, describe, expect, test } from '@jest/globals';
import { open } from '../../../secrets/envelope.ts';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { refusals } from '../../support/refusals.ts';

const api = apiForFile();
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
let anna: Tenant;
let prefixes: string[];
beforeAll(async () => {
  await api.schedules.ensure();
  anna = await api.createTenant('Anna');
  prefixes = [
    `/api/projects/${anna.projectId}/batch_exports/`,
    '/api/projects/@current/batch_exports',
    `/api/environments/${anna.projectId}/batch_exports/`,
    `/api/organizations/${anna.organizationId}/batch_exports/`,
    '/api/organizations/@current/batch_exports',
  ];
});

/** A bucket with canaries where secrets go. */
const ACCESS = 'canary-access-key-0123';
const SECRET = 'canary-secret-key-4567';
const s3 = (prefix: string, more: object = {}) => ({
  type: 'S3',
  config: {
    bucket_name: 'lake',
    region: 'eu-west-1',
    prefix,
    aws_access_key_id: ACCESS,
    aws_secret_access_key: SECRET,
    ...more,
  },
});
const file = (directory: string, more: object = {}) => ({ type: 'File', config: { directory, ...more } });
const nowhere = { type: 'NoOp', config: {} };

async function create(body: object, of: Tenant = anna, url = '/api/projects/@current/batch_exports/') {
  const answer = await api.request(of, 'POST', url, { name: 'Lake', interval: 'hour', ...body });
  expect([answer.statusCode, answer.json()]).toEqual([
    201,
    expect.objectContaining({ id: expect.any(String) }),
  ]);
  return answer.json();
}
const ask = async (method: string, url: string, body?: object, of: Tenant | string = anna) => {
  const answer = await api.request(of, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
};
const of = (id: string) => `/api/projects/@current/batch_exports/${id}/`;

describe('a batch export', () => {
  test('is created with what was left out', async () => {
    const created = await create({ destination: nowhere });
    expect(created).toEqual({
      id: expect.stringMatching(UUID),
      team_id: anna.projectId,
      name: 'Lake',
      model: 'events',
      destination: { type: 'NoOp', config: {} },
      interval: 'hour',
      timezone: 'UTC',
      offset_day: null,
      offset_hour: null,
      paused: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      last_updated_at: expect.stringMatching(/Z$/),
      last_paused_at: null,
      start_at: null,
      end_at: null,
      hogql_query: null,
      schema: null,
      filters: null,
      missing: null,
      lag: null,
      latest_runs: [],
    });
  });

  test('has every field that was given', async () => {
    const filters = [{ type: 'event', key: '$browser', operator: 'exact', value: ['Firefox'] }];
    const given = {
      name: 'All of it',
      model: 'events',
      interval: 'week',
      timezone: 'Europe/Berlin',
      offset_day: 1,
      offset_hour: 4,
      paused: true,
      start_at: '2026-01-01T00:00:00.000Z',
      end_at: '2027-01-01T01:00:00+01:00',
      last_paused_at: '2026-02-01T00:00:00Z',
      hogql_query: 'select event, properties.$browser as browser from events',
      filters,
      destination: file('all', { prefix: '{year}/', file_format: 'Parquet', compression: 'zstd' }),
    };
    expect(await create(given)).toMatchObject({
      ...given,
      start_at: '2026-01-01T00:00:00Z',
      end_at: '2027-01-01T00:00:00Z',
      schema: {
        fields: [
          { expression: 'event', alias: 'event' },
          { expression: 'properties.$browser', alias: 'browser' },
        ],
        values: {},
        hogql_query: 'SELECT event, properties.$browser AS browser FROM events',
      },
    });
  });

  test('is the same by every path', async () => {
    const { id } = await create({ destination: nowhere });
    for (const prefix of prefixes) {
      const url = `${prefix.replace(/\/$/, '')}/${id}/`;
      const { status, body } = await ask('GET', url);
      expect([url, status, body.id]).toEqual([url, 200, id]);
      const patched = await ask('PATCH', url, { name: url });
      expect([patched.status, patched.body.name]).toEqual([200, url]);
      const replaced = await ask('PUT', url, { name: 'Put', interval: 'day', destination: nowhere });
      expect([replaced.status, replaced.body.name, replaced.body.interval]).toEqual([200, 'Put', 'day']);
    }
    for (const prefix of prefixes) {
      const made = await create({ destination: nowhere }, anna, prefix);
      expect(made.team_id).toBe(anna.projectId);
      const deleted = await api.request(anna, 'DELETE', `${prefix.replace(/\/$/, '')}/${made.id}/`);
      expect([deleted.statusCode, deleted.body]).toEqual([204, '']);
      expect(await ask('GET', of(made.id))).toEqual({ status: 404, body: refusals.notFound() });
      expect((await ask('DELETE', of(made.id))).status).toBe(404);
      expect((await ask('PATCH', of(made.id), { name: 'x' })).status).toBe(404);
    }
  });

  test('that is deleted stays in the database without its secrets', async () => {
    const { id } = await create({ destination: s3('deleted/') });
    await ask('DELETE', of(id));
    const { rows } = await api.pool.query('select deleted_at, secrets from batch_exports where id = $1', [
      id,
    ]);
    expect(rows).toEqual([{ deleted_at: expect.any(String), secrets: null }]);
  });

  test('stands in lists newest first, with pages and without what is deleted', async () => {
    const ben = await api.createTenant('Ben');
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      ids.unshift((await create({ name, destination: nowhere }, ben)).id);
    }
    const gone = await create({ destination: nowhere }, ben);
    await ask('DELETE', of(gone.id), undefined, ben);
    for (const place of [`projects/${ben.projectId}`, 'organizations/@current']) {
      const url = `/api/${place}/batch_exports/`;
      const { body } = await ask('GET', url, undefined, ben);
      expect([body.count, body.next, body.results.map((one: { id: string }) => one.id)]).toEqual([
        3,
        null,
        ids,
      ]);
      const page = (await ask('GET', `${url}?limit=1&offset=1`, undefined, ben)).body;
      expect([page.results[0].id, page.next, page.previous]).toEqual([
        ids[1],
        `https://sluice.test${url}?limit=1&offset=2`,
        `https://sluice.test${url}?limit=1`,
      ]);
    }
  });

  test('is written into the activity log', async () => {
    const { id } = await create({ destination: s3('audited/') });
    await ask('PATCH', of(id), {
      name: 'Renamed',
      destination: { config: { aws_secret_access_key: 'new-canary' } },
    });
    await ask('POST', `${of(id)}pause/`);
    await ask('DELETE', of(id));
    const { body } = await ask('GET', '/api/projects/@current/activity_log/?limit=4');
    expect(
      body.results.map((one: { activity: string; detail: object }) => [one.activity, one.detail]),
    ).toEqual([
      ['deleted', { name: 'Renamed' }],
      ['updated', { changes: [{ field: 'paused', before: false, after: true }] }],
      [
        'updated',
        {
          changes: [{ field: 'name', before: 'Lake', after: 'Renamed' }],
          secrets_replaced: ['aws_secret_access_key'],
        },
      ],
      ['created', { name: 'Lake', model: 'events', destination: 'S3' }],
    ]);
    expect(body.results.every((one: { scope: string; item_id: string }) => one.scope === 'BatchExport')).toBe(
      true,
    );
    expect(JSON.stringify(body)).not.toMatch(/canary/);
  });
});

describe('secrets', () => {
  const CANARIES = /canary|secrets|slc1/;
  const stored = async (id: string) => {
    const { rows } = await api.pool.query('select config, secrets from batch_exports where id = $1', [id]);
    const text = open(
      api.keyring as NonNullable<typeof api.keyring>,
      rows[0].secrets,
      `batch_exports/${id}/secrets`,
    );
    return { config: rows[0].config, sealed: rows[0].secrets as string, secrets: JSON.parse(text) };
  };

  test('are in no answer and in no column as they are', async () => {
    const { id } = await create({ destination: s3('secret/') });
    for (const url of prefixes) {
      const answers = [await api.request(anna, 'GET', url)];
      answers.push(await api.request(anna, 'GET', `${url.replace(/\/$/, '')}/${id}/`));
      answers.push(await api.request(anna, 'PATCH', `${url.replace(/\/$/, '')}/${id}/`, { name: 'x' }));
      for (const answer of answers) {
        expect(answer.statusCode).toBe(200);
        expect(answer.body).not.toMatch(CANARIES);
      }
    }
    const { config, sealed, secrets } = await stored(id);
    expect(config).toEqual({ bucket_name: 'lake', region: 'eu-west-1', prefix: 'secret/' });
    expect(sealed).not.toMatch(/canary/);
    expect(secrets).toEqual({ aws_access_key_id: ACCESS, aws_secret_access_key: SECRET });
  });

  test('stay when a change does not name them, key by key', async () => {
    const { id } = await create({ destination: s3('kept/', { max_file_size_mb: 5 }) });
    const { body } = await ask('PATCH', of(id), {
      destination: { type: 'S3', config: { max_file_size_mb: null } },
    });
    expect(body.destination).toEqual({
      type: 'S3',
      config: { bucket_name: 'lake', region: 'eu-west-1', prefix: 'kept/', max_file_size_mb: null },
    });
    expect((await stored(id)).secrets).toEqual({ aws_access_key_id: ACCESS, aws_secret_access_key: SECRET });
    await ask('PATCH', of(id), {
      destination: { type: 'AwsS3', config: { aws_access_key_id: 'another-canary' } },
    });
    expect((await stored(id)).secrets).toEqual({
      aws_access_key_id: 'another-canary',
      aws_secret_access_key: SECRET,
    });
    await ask('PUT', of(id), { name: 'Put', interval: 'hour', destination: { type: 'AwsS3', config: {} } });
    expect((await stored(id)).secrets).toMatchObject({ aws_secret_access_key: SECRET });
    // Both go, or none: one alone is refused.
    const refused = await ask('PATCH', of(id), { destination: { config: { aws_secret_access_key: null } } });
    expect(refused).toEqual({
      status: 400,
      body: refusals.field(
        'destination__config__aws_secret_access_key',
        'invalid_input',
        'aws_access_key_id and aws_secret_access_key must be set together: one of them is missing',
      ),
    });
    expect(JSON.stringify(refused)).not.toMatch(/canary/);
  });

  test('that are blank are refused by name, in a change and at creation, and the stored ones stay', async () => {
    const { id } = await create({ destination: s3('blank/') });
    const blank = { bucket_name: 'other', aws_access_key_id: '', aws_secret_access_key: '' };
    const refusal = {
      status: 400,
      body: refusals.field(
        'destination__config__aws_access_key_id',
        'invalid_input',
        "The following inputs are empty: ['aws_access_key_id', 'aws_secret_access_key']",
      ),
    };
    expect(await ask('PATCH', of(id), { destination: { type: 'S3', config: blank } })).toEqual(refusal);
    expect(await ask('PATCH', of(id), { destination: { config: blank } })).toEqual(refusal);
    expect(
      await ask('POST', '/api/projects/@current/batch_exports/', {
        ...{ name: 'Blank', interval: 'hour', destination: s3('blank-2/', blank) },
      }),
    ).toEqual(refusal);
    expect((await stored(id)).secrets).toEqual({ aws_access_key_id: ACCESS, aws_secret_access_key: SECRET });
  });

  test.each(['integration_id', 'integration'])(
    'come with the export: %s is null, or refused with a sentence',
    async (field) => {
      const made = await create({ destination: { ...file(field), [field]: null } });
      expect(made.destination).toEqual(file(field));
      expect((await ask('PATCH', of(made.id), { destination: { [field]: null } })).status).toBe(200);
      const refusal = {
        status: 400,
        body: refusals.field(
          `destination__${field}`,
          'invalid_input',
          `Destinations have no integrations: the credentials of a batch export are in its \`config\`. Leave \`${field}\` out, or send null.`,
        ),
      };
      for (const named of [7, '7', '01900000-0000-7000-8000-000000000001']) {
        const destination = { ...file(`${field}-2`), [field]: named };
        const body = { name: 'Integrated', interval: 'hour', destination };
        expect(await ask('POST', '/api/projects/@current/batch_exports/', body)).toEqual(refusal);
        expect(await ask('PUT', of(made.id), body)).toEqual(refusal);
        expect(await ask('PATCH', of(made.id), { destination: { [field]: named } })).toEqual(refusal);
      }
    },
  );

  test('cannot be stored without keys, and then nothing is', async () => {
    const { rows: before } = await api.pool.query('select count(*) from batch_exports');
    const keyless = await api.rebuild({ keyring: undefined });
    const post = (destination: object) =>
      keyless.inject({
        method: 'POST',
        url: '/api/projects/@current/batch_exports/',
        headers: { authorization: `Bearer ${anna.key}` },
        payload: { name: 'x', interval: 'hour', destination },
      });
    const refused = await post(s3('keyless/'));
    expect([refused.statusCode, refused.json().detail]).toEqual([
      503,
      expect.stringContaining('SLUICE_ENCRYPTION_KEYS is not set'),
    ]);
    const { rows: after } = await api.pool.query('select count(*) from batch_exports');
    expect(after).toEqual(before);
    expect((await post(nowhere)).statusCode).toBe(201);
    await keyless.close();
  });
});

describe('a change', () => {
  test('leaves what it does not name', async () => {
    const filters = [{ type: 'event', key: 'a', operator: 'exact', value: 'b' }];
    const made = await create({
      ...{ destination: file('kept', { include_events: ['a'] }), interval: 'day', offset_hour: 3 },
      ...{ timezone: 'Asia/Tokyo', filters, start_at: '2026-01-01T00:00:00Z' },
      hogql_query: 'select uuid from events',
    });
    const { body } = await ask('PATCH', of(made.id), {});
    expect({ ...body, last_updated_at: null }).toEqual({ ...made, last_updated_at: null });
    const cleared = await ask('PATCH', of(made.id), {
      ...{ timezone: null, filters: null, start_at: null, hogql_query: null, offset_hour: null },
    });
    expect(cleared.body).toMatchObject({
      ...{ timezone: 'UTC', filters: null, start_at: null, hogql_query: null, schema: null, offset_hour: 0 },
      destination: made.destination,
    });
  });

  test('of the interval keeps the offsets that the new one has', async () => {
    const { id } = await create({ destination: nowhere, interval: 'week', offset_day: 3, offset_hour: 5 });
    const patch = async (body: object) => {
      const { body: now } = await ask('PATCH', of(id), body);
      return [now.interval, now.offset_day, now.offset_hour];
    };
    expect(await patch({ offset_hour: 6 })).toEqual(['week', 3, 6]);
    expect(await patch({ interval: 'day' })).toEqual(['day', null, 6]);
    expect(await patch({ interval: 'every 15 minutes' })).toEqual(['every 15 minutes', null, null]);
    expect(await patch({ interval: 'week', offset_day: 6 })).toEqual(['week', 6, 0]);
  });

  test('can send back what was answered', async () => {
    for (const body of [
      { interval: 'hour', destination: nowhere },
      { interval: 'day', destination: nowhere, offset_hour: 7 },
      { interval: 'week', destination: file('again'), offset_day: 2, offset_hour: 1 },
    ]) {
      const made = await create(body);
      const { status, body: again } = await ask('PUT', of(made.id), made);
      expect(status).toBe(200);
      expect({ ...again, last_updated_at: null }).toEqual({ ...made, last_updated_at: null });
    }
  });

  test('of paused does not set last_paused_at; pausing does, once', async () => {
    const { id } = await create({ destination: nowhere });
    expect((await ask('PATCH', of(id), { paused: true })).body).toMatchObject({
      paused: true,
      last_paused_at: null,
    });
    expect((await ask('PATCH', of(id), { paused: false })).body).toMatchObject({ paused: false });
    for (const prefix of prefixes) {
      const url = `${prefix.replace(/\/$/, '')}/${id}`;
      expect(await ask('POST', `${url}/pause/`)).toEqual({ status: 200, body: { paused: true } });
      const { last_paused_at: at } = (await ask('GET', url)).body;
      expect(at).toMatch(/Z$/);
      expect(await ask('POST', `${url}/pause/`)).toEqual({ status: 200, body: { paused: true } });
      expect((await ask('GET', url)).body).toMatchObject({ paused: true, last_paused_at: at });
      expect(await ask('POST', `${url}/unpause/`)).toEqual({ status: 200, body: { paused: false } });
      expect(await ask('POST', `${url}/unpause/`, { backfill: true })).toEqual({
        status: 200,
        body: { paused: false },
      });
      expect((await ask('GET', url)).body).toMatchObject({ paused: false, last_paused_at: at });
    }
  });

  test('by several at once loses nothing', async () => {
    const { id } = await create({ destination: file('crowd') });
    const keys = [
      'prefix',
      'file_format',
      'compression',
      'max_file_size_mb',
      'include_events',
      'exclude_events',
    ];
    const values = ['p/', 'JSONLines', 'gzip', 7, ['a'], ['b']];
    await Promise.all(
      keys.map((key, at) => ask('PATCH', of(id), { destination: { config: { [key]: values[at] } } })),
    );
    expect((await ask('GET', of(id))).body.destination.config).toEqual({
      directory: 'crowd',
      ...Object.fromEntries(keys.map((key, at) => [key, values[at]])),
    });
  });
});

describe('two exports', () => {
  test('must not write the same files, as far as the actor may see both', async () => {
    const first = await create({ name: 'First', destination: s3('same/{table}/') });
    const message = (which: string) =>
      refusals.field(
        'destination__config__prefix',
        'invalid_input',
        `This batch export would overwrite the files of ${which}. Give it another prefix.`,
      );
    const body = { name: 'x', interval: 'hour', destination: s3('/same//events') };
    const url = '/api/projects/@current/batch_exports/';
    expect(await ask('POST', url, body)).toEqual({
      status: 400,
      body: message(`the batch export "First" (${first.id})`),
    });
    // Anybody can name any bucket. A stranger neither reserves it nor learns who writes there; runs find the manifest.
    const stranger = await api.createTenant('Stranger');
    expect((await ask('POST', url, body, stranger)).status).toBe(201);
    expect((await ask('POST', url, body, stranger)).status).toBe(400);
    expect((await ask('PATCH', of(first.id), { destination: s3('same/{table}') })).status).toBe(200);
    // Of the same organization, but with a key that is bound to another project.
    const second = (await ask('POST', '/api/projects/', { name: 'Second' })).body;
    await ask('PATCH', '/api/users/@me/', { set_current_team: anna.projectId });
    const { value } = await api.createKey(anna, { scopedTeams: [second.id] });
    const elsewhere = await ask('POST', `/api/projects/${second.id}/batch_exports/`, body, value);
    expect(elsewhere.status).toBe(201);
    await ask('DELETE', `/api/projects/${second.id}/batch_exports/${elsewhere.body.id}/`, undefined, value);
    const other = await create({ ...body, destination: s3('other/') });
    expect(await ask('PATCH', of(other.id), { destination: { config: { prefix: 'same/events' } } })).toEqual({
      status: 400,
      body: message(`the batch export "First" (${first.id})`),
    });
    expect((await ask('PATCH', of(first.id), { name: 'Itself' })).status).toBe(200);
    // Another length of intervals gives other names; a deleted export writes nothing.
    expect((await ask('POST', url, { ...body, interval: 'day' })).status).toBe(201);
    await ask('DELETE', of(first.id));
    expect((await ask('POST', url, body)).status).toBe(201);
  });

  test('that are saved at the same moment are not both saved', async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        ask('POST', '/api/projects/@current/batch_exports/', {
          ...{ name: 'Race', interval: 'hour', destination: file('race', { prefix: 'x' }) },
        }),
      ),
    );
    expect(answers.map((one) => one.status).sort()).toEqual([201, 400, 400, 400, 400, 400]);
  });
});

describe('under an organization', () => {
  test('the project is the one that is named, the only one, or the one that the user works in', async () => {
    const carla = await api.createTenant('Carla');
    const url = `/api/organizations/${carla.organizationId}/batch_exports/`;
    const post = (body: object, key: Tenant | string = carla) =>
      ask('POST', url, { name: 'x', interval: 'hour', destination: nowhere, ...body }, key);
    expect((await post({})).body.team_id).toBe(carla.projectId);
    const second = (await ask('POST', '/api/projects/', { name: 'Second' }, carla)).body.id as number;
    const third = (await ask('POST', '/api/projects/', { name: 'Third' }, carla)).body.id as number;
    expect((await post({ team_id: second })).body.team_id).toBe(second);
    await ask('PATCH', '/api/users/@me/', { set_current_team: third }, carla);
    expect((await post({})).body.team_id).toBe(third);
    // A key that is bound to projects: to the only one it has, and never to others.
    const { value: bound } = await api.createKey(carla, { scopedTeams: [second] });
    expect((await post({}, bound)).body.team_id).toBe(second);
    const stranger = refusals.field('team_id', 'does_not_exist', 'This project does not exist.');
    for (const [team_id, key] of [
      [third, bound],
      [anna.projectId, carla],
      [999_999_999, carla],
    ] as const) {
      expect(await post({ team_id }, key)).toEqual({ status: 400, body: stranger });
    }
    const { value: two } = await api.createKey(carla, { scopedTeams: [carla.projectId, second] });
    expect(await post({}, two)).toEqual({
      status: 400,
      body: refusals.field(
        'team_id',
        'required',
        'The organization has several projects; say which one the batch export is for.',
      ),
    });
    const teams = async (key: Tenant | string) =>
      (await ask('GET', url, undefined, key)).body.results
        .map((one: { team_id: number }) => one.team_id)
        .sort();
    expect(await teams(carla)).toEqual([carla.projectId, second, second, third]);
    expect(await teams(bound)).toEqual([second, second]);
    const hidden = (await ask('GET', `/api/projects/${third}/batch_exports/`, undefined, carla)).body
      .results[0].id;
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      expect((await ask(method, `${url}${hidden}/`, method === 'PATCH' ? {} : undefined, bound)).status).toBe(
        404,
      );
      expect((await ask('GET', `${url}${hidden}/`, undefined, carla)).status).toBe(200);
    }
    expect(await ask('GET', `/api/projects/${third}/batch_exports/`, undefined, bound)).toEqual({
      status: 403,
      body: refusals.denied(`API key does not have access to the requested project: ID ${third}.`),
    });
  });

  test('without a project there is nowhere to put one', async () => {
    const dora = await api.createTenant('Dora');
    await ask('DELETE', `/api/projects/${dora.projectId}/`, undefined, dora);
    const body = { name: 'x', interval: 'hour', destination: nowhere };
    expect(await ask('POST', `/api/organizations/${dora.organizationId}/batch_exports/`, body, dora)).toEqual(
      {
        status: 400,
        body: refusals.field('team_id', 'required', 'The organization has no project.'),
      },
    );
  });
});

describe('what is not there', () => {
  test.each(['x', '01900000-0000-7000-8000-000000000001', '%00', "1'--"])(
    '%s is 404 everywhere',
    async (id) => {
      const detail = decodeURIComponent(id);
      for (const prefix of [prefixes[0], prefixes[3]]) {
        for (const [method, rest, text] of [
          ['GET', '', 'Not found.'],
          ['PUT', '', 'Not found.'],
          ['PATCH', '', 'Not found.'],
          ['DELETE', '', 'Not found.'],
          ['POST', 'pause/', `BatchExport ID '${detail}' not found.`],
          ['POST', 'unpause/', `BatchExport ID '${detail}' not found.`],
          ['POST', 'run/', 'Not found.'],
          ['POST', 'preview/', 'Not found.'],
          ['POST', 'run_test_step/', 'Not found.'],
          ['GET', 'logs/', 'Not found.'],
          ['GET', 'intervals/', 'Not found.'],
          ['GET', 'metrics/', 'Not found.'],
          ['GET', 'metrics/totals/', 'Not found.'],
        ] as const) {
          const { status, body } = await ask(
            method,
            `${prefix}${id}/${rest}`,
            method === 'GET' ? undefined : {},
          );
          expect([method, rest, status, body]).toEqual([method, rest, 404, refusals.notFound(text)]);
        }
      }
      for (const [method, rest, text] of [
        ['GET', 'runs/', 'Not found.'],
        ['GET', 'backfills/', 'Not found.'],
        ['POST', 'backfills/', 'BatchExport not found.'],
        ['POST', 'backfill/', 'BatchExport not found.'],
      ] as const) {
        const { status, body } = await ask(
          method,
          `${prefixes[0]}${id}/${rest}`,
          method === 'GET' ? undefined : {},
        );
        expect([rest, status, body]).toEqual([rest, 404, refusals.notFound(text)]);
      }
    },
  );
});
