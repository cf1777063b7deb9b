import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { refusals } from '../../support/refusals.ts';

const api = apiForFile();
let anna: Tenant;
let url: string;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  url = `/api/projects/${anna.projectId}/batch_exports/`;
});

const nowhere = { type: 'NoOp', config: {} };
const good = { name: 'Lake', interval: 'hour', destination: nowhere };
const bucket = { bucket_name: 'lake', region: 'eu-west-1', prefix: 'p/' };
const database = { user: 'u', password: 'p', host: 'db.example.com', database: 'd' };
const invalid = (attr: string | null, detail: string) => refusals.field(attr, 'invalid_input', detail);
const required = (attr: string) => refusals.field(attr, 'required', 'This field is required.');
const choice = (attr: string, value: string) =>
  refusals.field(attr, 'invalid_choice', `"${value}" is not a valid choice.`);
const nothing = (attr: string) => refusals.field(attr, 'null', 'This field may not be null.');

const to = (type: string, config: unknown) => ({ destination: { type, config } });
const config = (key: string, detail: string) =>
  invalid(key === '' ? 'destination__config' : `destination__config__${key}`, detail);
const query = (detail: string, reason?: unknown) => ({
  ...invalid('hogql_query', detail),
  ...(reason === undefined ? {} : { reason }),
});
const filters = (detail: string) => invalid('filters', detail);

describe.each<[string, [object, object][]]>([
  [
    'fields',
    [
      [{ name: undefined }, required('name')],
      [{ name: '' }, refusals.field('name', 'blank', 'This field may not be blank.')],
      [{ name: null }, nothing('name')],
      [{ name: 5 }, invalid('name', 'Not a valid string.')],
      [
        { name: 'x'.repeat(401) },
        refusals.field('name', 'max_length', 'Ensure this field has no more than 400 characters.'),
      ],
      [{ interval: undefined }, required('interval')],
      [{ interval: 'month' }, choice('interval', 'month')],
      [{ interval: null }, nothing('interval')],
      [{ destination: undefined }, required('destination')],
      [{ destination: null }, nothing('destination')],
      [
        { destination: 'S3' },
        refusals.field('destination', 'not_a_dict', 'Expected a dictionary of items but got type "str".'),
      ],
      [{ destination: { config: {} } }, required('destination__type')],
      [{ model: 'cohorts' }, choice('model', 'cohorts')],
      [{ paused: 'maybe' }, invalid('paused', 'Must be a valid boolean.')],
      [
        { start_at: 'tomorrow' },
        invalid(
          'start_at',
          'Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].',
        ),
      ],
      ...['2026-02-30T00:00:00Z', '2026-01-31', '', '0000-01-01T00:00:00Z'].map(
        (end_at): [object, object] => [
          { end_at },
          invalid(
            'end_at',
            'Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].',
          ),
        ],
      ),
      ...['0001-01-01T00:00:00+14:00', '9999-12-31T23:59:59-12:00'].map((start_at): [object, object] => [
        { start_at },
        invalid('start_at', 'Datetime value out of range.'),
      ]),
      [
        { start_at: '2026-01-01T00:00:00Z', end_at: '2026-01-01T01:00:00+01:00' },
        invalid('end_at', "'start_at' must be before 'end_at'"),
      ],
    ],
  ],
  [
    'time zone and offsets',
    [
      [{ timezone: 'Mars/Olympus' }, choice('timezone', 'Mars/Olympus')],
      [{ timezone: '+02:00' }, choice('timezone', '+02:00')],
      [{ timezone: 'europe/berlin' }, choice('timezone', 'europe/berlin')],
      [{ timezone: 'PST' }, choice('timezone', 'PST')],
      [
        { interval: 'day', offset_day: 0 },
        invalid('offset_day', 'offset_day should not be specified for daily intervals'),
      ],
      [{ offset_day: 1 }, invalid('offset_day', 'offset_day is not applicable for non-weekly intervals')],
      [
        { interval: 'every 5 minutes', offset_hour: 1 },
        invalid('offset_hour', 'offset_hour is not applicable for non-daily/weekly intervals'),
      ],
      [
        { interval: 'week', offset_day: 7 },
        refusals.field('offset_day', 'max_value', 'Ensure this value is less than or equal to 6.'),
      ],
      [
        { interval: 'week', offset_hour: -1 },
        refusals.field('offset_hour', 'min_value', 'Ensure this value is greater than or equal to 0.'),
      ],
      [{ interval: 'week', offset_hour: 'x' }, invalid('offset_hour', 'A valid number is required.')],
    ],
  ],
  [
    'the configuration',
    [
      [to('FTP', {}), choice('destination__type', 'FTP')],
      [
        to('S3', { ...bucket, zeta: 1, alpha: 2 }),
        config('', "Configuration has unknown field/s: 'alpha', 'zeta'"),
      ],
      [to('NoOp', { team_id: 5 }), config('', "Configuration has unknown field/s: 'team_id'")],
      [
        to('S3', { region: 'r', prefix: 'p' }),
        config('bucket_name', "Configuration missing required field: 'bucket_name'"),
      ],
      [to('S3', null), config('bucket_name', "Configuration missing required field: 'bucket_name'")],
      [to('S3', undefined), config('bucket_name', "Configuration missing required field: 'bucket_name'")],
      [
        to('Postgres', { ...database, port: 'x' }),
        config('port', "Configuration has invalid type: got 'str', expected 'int'"),
      ],
      [
        to('S3', { ...bucket, use_virtual_style_addressing: 'maybe' }),
        config('use_virtual_style_addressing', "Configuration has invalid type: got 'str', expected 'bool'"),
      ],
      [
        to('NoOp', { include_events: 'a' }),
        config('include_events', "Configuration has invalid type: got 'str', expected 'list'"),
      ],
      [
        to('S3', { ...bucket, file_format: 'Avro' }),
        config(
          'file_format',
          "File format Avro is not supported. Supported file formats are ['Parquet', 'JSONLines', 'CSV']",
        ),
      ],
      [
        to('S3', { ...bucket, compression: 'snappy' }),
        config(
          'compression',
          "Compression snappy is not supported for file format JSONLines. Supported compressions are ['gzip', 'brotli', 'zstd']",
        ),
      ],
      [
        to('S3', { ...bucket, bucket_name: '', prefix: ' ' }),
        config('bucket_name', "The following inputs are empty: ['bucket_name', 'prefix']"),
      ],
      [
        to('File', { directory: 'x/'.repeat(1025) }),
        config('directory', 'directory is longer than 2048 bytes'),
      ],
      [
        to('File', { directory: `x/${'é'.repeat(128)}` }),
        config('directory', 'directory has a segment that is longer than 255 bytes'),
      ],
      [
        to('File', { directory: '../..' }),
        { ...config('directory', ''), detail: expect.stringContaining('directory') },
      ],
      [
        to('HTTP', { url: 'ftp://x', token: 't' }),
        config('url', 'Invalid destination URL: ftp: is neither http: nor https:'),
      ],
      [
        { ...to('HTTP', { url: 'https://x.example/batch/', token: 't' }), model: 'persons' },
        invalid('model', 'HTTP batch exports only support the events model'),
      ],
      [
        { ...to('NoOp', { exclude_events: ['a'] }), model: 'sessions' },
        config('exclude_events', "'exclude_events' is only supported for 'events' not 'sessions' model"),
      ],
    ],
  ],
  [
    'filters',
    [
      [{ filters: {} }, filters("'filters' should be an array of filters")],
      [{ filters: ['x'] }, filters('Each filter must be an object')],
      [
        { filters: [{ type: 'group' }] },
        filters("Each filter must have a 'type' of one of: 'cohort', 'event', 'hogql', 'person'"),
      ],
      [
        { filters: [{}] },
        filters("Each filter must have a 'type' of one of: 'cohort', 'event', 'hogql', 'person'"),
      ],
      [
        { model: 'persons', filters: [{ type: 'event', key: 'a', operator: 'exact', value: 'b' }] },
        filters("'filters' is only supported for 'events' not 'persons' model"),
      ],
      [
        { filters: [{ type: 'event', data_interval_start: 'x' }] },
        { ...filters(''), detail: expect.stringContaining("are run attributes and not 'filters'") },
      ],
      [
        { filters: [{ type: 'hogql', key: 'properties.a = ' }] },
        { ...filters(''), detail: expect.stringMatching(/^One or more provided filters are invalid: /) },
      ],
      [
        { filters: [{ type: 'event', key: 'a', operator: 'resembles', value: 1 }] },
        { ...filters(''), detail: expect.stringMatching(/^One or more provided filters are invalid: /) },
      ],
    ],
  ],
  [
    'hogql_query',
    [
      [
        { hogql_query: 'select uuid from events where (' },
        query('Failed to parse query', expect.any(String)),
      ],
      [
        { hogql_query: 'select uuid from events union all select uuid from events' },
        query('UNIONs are not supported', expect.stringMatching(/^Line 1, column 1:/)),
      ],
      [{ hogql_query: 'select 1' }, query('Query must SELECT FROM events', expect.stringMatching(/^Line 1/))],
      [
        { hogql_query: 'select uuid from (select uuid from events)' },
        query('Subqueries or CTEs are not supported', expect.stringMatching(/^Line 1, column \d+:/)),
      ],
      [
        { hogql_query: 'with x as (select 1) select uuid from events' },
        query('Subqueries or CTEs are not supported', expect.stringMatching(/^Line 1, column \d+:/)),
      ],
      [
        { hogql_query: 'select key from cohorts' },
        query(
          'Query must only SELECT FROM events, persons, sessions or groups',
          'Line 1, column 17:\nselect key from cohorts\n                ^',
        ),
      ],
      [
        { hogql_query: 'select uuid from events e join persons p on p.id = e.person_id' },
        query('JOINs are not supported', expect.stringMatching(/^Line 1, column \d+:/)),
      ],
      [
        { hogql_query: 'select uuid from events limit 5' },
        {
          ...query('', expect.stringMatching(/^Line 1, column 31:/)),
          detail: expect.stringMatching(/^Unsupported HogQL query/),
        },
      ],
      [
        { hogql_query: `select concat(${Array(101).fill('event').join()}) as long from events` },
        query('Invalid HogQL query: cannot pass more than 100 arguments to a function'),
      ],
      [
        { filters: [{ type: 'hogql', key: `concat(${Array(101).fill('event').join()}) = 'x'` }] },
        filters(
          'One or more provided filters are invalid: cannot pass more than 100 arguments to a function',
        ),
      ],
      [
        { hogql_query: 'select nonsense from events' },
        {
          ...query('', expect.stringMatching(/^Line 1, column 8:/)),
          detail: expect.stringMatching(/^Invalid HogQL query: /),
        },
      ],
      [
        { model: 'persons', hogql_query: 'select uuid from events' },
        query('Query must only SELECT FROM persons', expect.stringMatching(/^Line 1, column 18:/)),
      ],
      [
        {
          ...to('HTTP', { url: 'https://x.example/batch/', token: 't' }),
          hogql_query: 'select uuid from events',
        },
        query("HTTP batch exports send rows as they are: 'hogql_query' is not supported"),
      ],
    ],
  ],
])('%s', (_name, cases) => {
  test.each(cases.map(([body, refusal]) => [JSON.stringify(body), body, refusal] as const))(
    '%s is refused alike when it is made and when it is previewed',
    async (_text, body, refusal) => {
      for (const path of [url, `${url}preview/`]) {
        const answer = await api.request(anna, 'POST', path, { ...good, ...body });
        expect([answer.statusCode, answer.json()]).toEqual([400, refusal]);
      }
      const { body: list } = await api.request(anna, 'GET', url);
      expect(JSON.parse(list).count).toBe(0);
    },
  );
});

describe('what may be given', () => {
  test.each([
    [{ model: null }, { model: 'events' }],
    [{ timezone: null }, { timezone: 'UTC' }],
    [
      { filters: null, hogql_query: null },
      { filters: null, schema: null },
    ],
    [{ hogql_query: '  ' }, { hogql_query: null }],
    [{ start_at: '2026-01-31T13:00Z' }, { start_at: '2026-01-31T13:00:00Z' }],
    [{ start_at: '2026-01-31T13:00' }, { start_at: '2026-01-31T13:00:00Z' }],
    [{ start_at: '2026-01-31t13:00:00.25+0530' }, { start_at: '2026-01-31T07:30:00.250000Z' }],
    [{ end_at: '2026-01-31 13:00:00-05' }, { end_at: '2026-01-31T18:00:00Z' }],
    [{ end_at: '9999-12-31T23:59:59Z' }, { end_at: '9999-12-31T23:59:59Z' }],
    [{ offset_day: null, offset_hour: null }, { offset_day: null }],
    [{ paused: true }, { paused: true, last_paused_at: null }],
    [{ unknown_field: 1, id: 'x', team_id: 99, created_at: null, latest_runs: [1] }, { latest_runs: [] }],
    [{ model: 'persons', ...to('NoOp', { exclude_events: [], include_events: null }) }, { model: 'persons' }],
    [
      to('Postgres', { ...database, port: '5433', has_self_signed_cert: 'true' }),
      {
        destination: {
          type: 'Postgres',
          config: { host: 'db.example.com', database: 'd', port: 5433, has_self_signed_cert: true },
        },
      },
    ],
    [
      to('S3Compatible', { ...bucket, file_format: 'CSV', compression: 'zstd' }),
      {
        destination: { type: 'S3Compatible', config: { ...bucket, file_format: 'CSV', compression: 'zstd' } },
      },
    ],
    [
      to('HTTP', { url: 'https://x.example/batch/', token: 'phc_canary' }),
      { destination: { type: 'HTTP', config: { url: 'https://x.example/batch/' } } },
    ],
  ])('%j', async (body, shown) => {
    const answer = await api.request(anna, 'POST', url, { ...good, ...body });
    expect([answer.statusCode, answer.json()]).toEqual([201, expect.objectContaining(shown)]);
    await api.request(anna, 'DELETE', `${url}${answer.json().id}/`);
  });
});

describe('a change', () => {
  const change = async (body: object, before: object = good) => {
    const made = await api.request(anna, 'POST', url, { ...good, ...before });
    const answer = await api.request(anna, 'PATCH', `${url}${made.json().id}/`, body);
    const after = (await api.request(anna, 'GET', `${url}${made.json().id}/`)).json();
    await api.request(anna, 'DELETE', `${url}${made.json().id}/`);
    return {
      status: answer.statusCode,
      body: answer.json(),
      same: { ...after } as object,
      made: made.json(),
    };
  };
  test.each<[object, object, object]>([
    [
      { model: 'persons' },
      good,
      invalid('model', 'Changing models is not supported. Create a new batch export instead.'),
    ],
    [
      { destination: { type: 'File', config: { directory: 'x' } } },
      good,
      refusals.field(
        'destination__type',
        'invalid_input',
        "Cannot change destination type from 'NoOp' to 'File'. Delete this batch export and create a new one with the new destination type.",
      ),
    ],
    [{ destination: { config: { x: 1 } } }, good, config('', "Configuration has unknown field/s: 'x'")],
    [
      { destination: { config: { bucket_name: '' } } },
      to('S3', bucket),
      config('bucket_name', "The following inputs are empty: ['bucket_name']"),
    ],
    [{ name: '' }, good, refusals.field('name', 'blank', 'This field may not be blank.')],
    [
      { interval: 'day', offset_day: 2 },
      good,
      invalid('offset_day', 'offset_day should not be specified for daily intervals'),
    ],
    [
      { offset_hour: 2 },
      good,
      invalid('offset_hour', 'offset_hour is not applicable for non-daily/weekly intervals'),
    ],
    [
      { start_at: '2027-01-01T00:00:00Z' },
      { end_at: '2026-01-01T00:00:00Z' },
      invalid('start_at', "'start_at' must be before 'end_at'"),
    ],
    [{ filters: 'x' }, good, filters("'filters' should be an array of filters")],
    [
      { hogql_query: 'select 1' },
      good,
      query('Query must SELECT FROM events', expect.stringMatching(/^Line 1/)),
    ],
  ])('%j of %j is refused and changes nothing', async (body, before, refusal) => {
    const answer = await change(body, before);
    expect([answer.status, answer.body]).toEqual([400, refusal]);
    expect(answer.same).toEqual(answer.made);
  });

  test('as a whole needs name, interval and destination', async () => {
    const made = (await api.request(anna, 'POST', url, good)).json();
    for (const field of ['name', 'interval', 'destination']) {
      const answer = await api.request(anna, 'PUT', `${url}${made.id}/`, { ...good, [field]: undefined });
      expect([answer.statusCode, answer.json()]).toEqual([400, required(field)]);
    }
  });

  test('of the model to what it is, or of the type to another name of it, is none', async () => {
    expect((await change({ model: 'events' })).status).toBe(200);
    const renamed = await change(
      { destination: { type: 'AwsS3' } },
      to('S3', { ...bucket, prefix: 'names/' }),
    );
    expect([renamed.status, renamed.body.destination.type]).toEqual([200, 'AwsS3']);
  });
});

test('scopes: reading lets nobody write, and writing lets read', async () => {
  const { value: reader } = await api.createKey(anna, { scopes: ['batch_export:read'] });
  const { value: writer } = await api.createKey(anna, { scopes: ['batch_export:write'] });
  const made = (await api.request(writer, 'POST', url, good)).json();
  expect((await api.request(reader, 'GET', `${url}${made.id}/`)).statusCode).toBe(200);
  expect((await api.request(writer, 'GET', `${url}${made.id}/`)).statusCode).toBe(200);
  for (const [method, path] of [
    ['POST', ''],
    ['PATCH', `${made.id}/`],
    ['PUT', `${made.id}/`],
    ['DELETE', `${made.id}/`],
    ['POST', `${made.id}/pause/`],
    ['POST', `${made.id}/run/`],
    // Events can be seen in it.
    ['POST', `${made.id}/preview/`],
    ['POST', 'preview/'],
    ['POST', `${made.id}/backfills/`],
  ] as const) {
    const answer = await api.request(reader, method, `${url}${path}`, {});
    expect([method, path, answer.statusCode, answer.json()]).toEqual([
      method,
      path,
      403,
      refusals.scope('batch_export:write'),
    ]);
  }
});
