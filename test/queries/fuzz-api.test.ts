// Generated and hostile questions through the API: a clear answer, nothing of another project, and no word of Postgres.
import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AGGREGATES, FUNCTIONS } from '../../hog/sql/index.ts';
import { expressionText } from '../../hog/text/expressions.ts';
import { selectText } from '../../hog/text/selects.ts';
import { capturedEvent } from '../capture/support.ts';
import { expr, query } from '../hog/sql/hostile-trees.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { rounds } from '../support/rounds.ts';

const SEED = 20_261_127;
const SELECTS = rounds(60, 2_000);
const LISTS = rounds(30, 1_000);
const CALLS = rounds(160, 10_000);
const ARGUMENTS = [
  ...[
    'properties',
    'properties.x',
    'properties.list',
    'properties.deep.a',
    'a',
    'created_at',
    'toString(properties)',
  ],
  ...[
    '1',
    '-1',
    '0',
    '1.5',
    '9223372036854775807',
    'null',
    'true',
    "''",
    "'a'",
    "'2026-01-31 10:00:00'",
    '\'[1,"b"]\'',
  ],
  ...[
    '[1, 2]',
    "['a', 'b']",
    '[]',
    "(1, 'a')",
    'now()',
    'today()',
    'toIntervalDay(1)',
    "toUUID('018f0000-0000-7000-8000-000000000000')",
  ],
  ...['x -> x', "'day'", "'%Y'", "'Europe/Berlin'", "repeat('ab', 1000)"],
];
/** What stands in the data of the other project. */
const SECRET = 'mellon';

const api = apiForFile();
const { mallory, anna } = tenantsForFile(api, 'mallory', 'anna');
const base = () => `/api/projects/${mallory.projectId}`;

beforeAll(async () => {
  const events = (text: string) =>
    Array.from({ length: 5 }, (_, index) =>
      capturedEvent({
        ...{ index, event: text, distinct_id: text },
        properties: { x: text, y: index, list: [1, text, null], deep: { a: text }, $session_id: text },
      }),
    );
  await api.ingest.submit({ projectId: mallory.projectId, events: events('own "\'\\ =1+1 \u2028') });
  await api.ingest.submit({ projectId: anna.projectId, events: events(SECRET) });
});

/** Words of Postgres, and names that only its statements have. */
const OF_POSTGRES =
  /SQLSTATE|relation "|syntax error at|operator does not exist|function \w+\.|::\w+|pg_|hq\.|\b[tc]\d+\.\w|project_id = |current transaction|cannot cast|at character/;

interface Asked {
  method?: string;
  url: string;
  body?: object;
}

async function ask({ method = 'POST', url, body }: Asked): Promise<number> {
  const answer = await api.request(mallory, method, url, body);
  const seen = { asked: JSON.stringify({ url, body }), status: answer.statusCode, body: answer.body };
  if (answer.statusCode !== 200 && answer.statusCode !== 400) throw new Error(JSON.stringify(seen));
  if (answer.body.includes(SECRET)) throw new Error(`rows of another project: ${JSON.stringify(seen)}`);
  if (answer.statusCode === 400) {
    const { detail, type, code } = answer.json();
    // An excerpt of the source is the client's own.
    const said = String(detail)
      .replace(/Cannot make sense of '.*' \(line/s, '')
      .replaceAll(/'[^']*'|"[^"]*"|`[^`]*`/g, '');
    if (OF_POSTGRES.test(said)) throw new Error(`words of Postgres: ${JSON.stringify(seen)}`);
    if (!type || !code) throw new Error(`no error of ours: ${JSON.stringify(seen)}`);
  }
  return answer.statusCode;
}

/** How many of the questions have an answer that is not an error. */
async function answered(questions: readonly Asked[]): Promise<number> {
  const complaints: string[] = [];
  let good = 0;
  for (const one of questions) {
    const status = await ask(one).catch((error: Error) => complaints.push(error.message));
    if (status === 200) good += 1;
  }
  expect(complaints).toEqual([]);
  return good;
}

const ask200 = (kind: object): Asked => ({ url: `${base()}/query/`, body: { query: kind } });
/** A generated tree may have no text. */
const textOf = <T>(write: (node: T) => string, node: T): string[] => {
  try {
    return [write(node)];
  } catch {
    return [];
  }
};

test('generated SELECTs', async () => {
  const texts = fc.sample(query, { seed: SEED, numRuns: SELECTS }).flatMap((one) => textOf(selectText, one));
  expect(texts.length).toBeGreaterThan(SELECTS / 2);
  await answered(texts.map((text) => ask200({ kind: 'HogQLQuery', query: text })));
});

test('functions and aggregates, with arguments of all kinds', async () => {
  const args = fc.array(fc.constantFrom(...ARGUMENTS), { maxLength: 3 });
  const names = [...Object.keys(FUNCTIONS), ...Object.keys(AGGREGATES)];
  const calls = fc.sample(fc.tuple(fc.constantFrom(...names), args), { seed: SEED + 2, numRuns: CALLS });
  const questions = calls.map(([name, list], index) => {
    const call = `${name}(${list.join(', ')})`;
    const from = index % 3 === 0 ? 'persons' : 'events';
    return ask200({ kind: 'HogQLQuery', query: `select ${call} from (select *, 'a' as a from ${from})` });
  });
  expect(await answered(questions)).toBeGreaterThan(questions.length / 10);
});

test('generated expressions in SELECTs, lists of events and of persons', async () => {
  const texts = fc
    .sample(expr, { seed: SEED + 1, numRuns: 4 * LISTS })
    .flatMap((one) => textOf(expressionText, one))
    .filter((text) => text.length < 300);
  const questions = texts.map((text, index) => {
    const other = texts[(index + 1) % texts.length] as string;
    return (
      [
        ask200({ kind: 'HogQLQuery', query: `select ${text}, ${other} from events` }),
        ask200({ kind: 'EventsQuery', select: [text, 'event'], where: [other], after: 'all' }),
        ask200({ kind: 'ActorsQuery', select: ['id', text], search: other.slice(0, 50) }),
        {
          method: 'GET',
          url: `${base()}/events/?after=all&format=csv&where=${encodeURIComponent(JSON.stringify([text]))}`,
        },
      ] as const
    )[index % 4] as Asked;
  });
  expect(await answered(questions)).toBeGreaterThan(0);
});

test('hostile values wherever a client writes a value', async () => {
  const values = [
    ...[
      "'",
      '"',
      '\\',
      '`',
      '\u0000',
      '\ud800',
      '%',
      '%%',
      '_',
      '$1',
      '$1::text',
      '{',
      '}',
      '{}',
      '[',
      '-',
      '--',
      '/*',
      ';',
    ],
    ...[
      "' or 1=1 --",
      '1e999',
      '-0',
      'NaN',
      'null',
      '\u2028',
      'x'.repeat(5_000),
      '\u{1f98a}',
      '(((((',
      '(a+)+$',
      '\\1',
      '[[:<:]]',
    ],
  ];
  const operators = ['exact', 'is_not', 'icontains', 'regex', 'gt', 'is_date_before', 'semver_gt', 'nope'];
  const questions = values.flatMap((value, index): Asked[] => {
    const property = { key: value, value, operator: operators[index % operators.length], type: 'event' };
    const text = encodeURIComponent(value.toWellFormed());
    return [
      ask200({ kind: 'EventsQuery', select: ['event'], after: value, properties: [property] }),
      ask200({ kind: 'EventsQuery', select: ['event'], event: value, personId: value, orderBy: [value] }),
      ask200({ kind: 'HogQLQuery', query: 'select {x} from events where {filters}', values: { x: value } }),
      ask200({
        ...{ kind: 'HogQLQuery', query: 'select event from events where {filters}' },
        filters: { properties: [property], dateRange: { date_from: value } },
      }),
      { method: 'GET', url: `${base()}/events/?event=${text}&person_id=${text}&after=${text}` },
      { method: 'GET', url: `${base()}/events/?properties=${text}` },
      { method: 'GET', url: `${base()}/events/values/?key=${text}&value=${text}&properties_x=${text}` },
      { method: 'GET', url: `${base()}/event_definitions/?search=${text}` },
      { method: 'GET', url: `${base()}/property_definitions/?search=${text}&event_names=${text}` },
    ];
  });
  expect(await answered(questions)).toBeGreaterThan(values.length);
});
