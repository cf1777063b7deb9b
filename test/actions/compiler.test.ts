import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ActionCompilerBusyError, createActionCompiler } from '../../actions/compiler.ts';
import type { StepDocument } from '../../actions/rows/actions.ts';
import { Turns } from '../../db/turns.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { endlessText } from '../support/endless-text.ts';

const api = apiForFile();
let anna: Tenant;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

const step = (key: string): StepDocument => ({
  ...{ event: null, selector: null, tag_name: null, text: null, text_matching: null, href: null },
  ...{ href_matching: null, url: null, url_matching: null },
  properties: [{ type: 'hogql', key }],
});
const moment = { now: Date.parse('2026-01-02T03:04:05Z'), timezone: 'UTC' };
/** The parser takes many seconds for it. */
const SLOW = { steps: [step(endlessText('a'))], moment };
const QUICK = { steps: [step('event = 1')], moment };

describe('the compiler of actions', () => {
  const compiler = createActionCompiler({ threads: 1, timeoutMs: 1_000, maxWaitingOfOne: 1 });
  afterAll(() => compiler.close());

  test('ends what takes too long, and goes on with others', async () => {
    await expect(compiler.compile(1, SLOW)).rejects.toMatchObject({
      name: 'FilterError',
      path: 'steps',
      message: 'The steps take too long to read: at most 1 seconds are allowed. Make them simpler.',
    });
    expect(await compiler.compile(1, { ...QUICK, steps: [] })).toEqual(['_H', 1, 29]);
  });

  test('ends when nobody waits any more', async () => {
    const gone = new AbortController();
    const compiled = compiler.compile(1, SLOW, gone.signal);
    gone.abort(new Error('the client is gone'));
    await expect(compiled).rejects.toThrow('the client is gone');
  });

  test('refuses what would wait in a queue that is full', async () => {
    const gone = new AbortController();
    const ended = [1, 2].map(() => compiler.compile(1, SLOW, gone.signal).catch(() => 'ended'));
    await expect(compiler.compile(1, QUICK)).rejects.toBeInstanceOf(ActionCompilerBusyError);
    gone.abort();
    expect(await Promise.all(ended)).toEqual(['ended', 'ended']);
  });
});

describe('saving an action', () => {
  const steps = [{ event: 'a' }];
  const send = async (changes: Parameters<typeof api.rebuild>[0], body: object) => {
    const app = await api.rebuild(changes);
    const answer = await app.inject({
      method: 'POST',
      url: `/api/projects/${anna.projectId}/actions/`,
      headers: { authorization: `Bearer ${anna.key}` },
      payload: body,
    });
    await app.close();
    return answer;
  };

  test('waits for the turn of the project at the compilers', async () => {
    const compiling = new Turns({ atOnce: 1, patience: 50 });
    const leave = await compiling.enter(anna.projectId + 1_000);
    expect((await send({ compiling }, { steps })).statusCode).toBe(503);
    leave();
    expect((await send({ compiling }, { steps })).statusCode).toBe(201);
  });

  test('is refused with the place, and with 503 where the compiler is busy', async () => {
    const busy = {
      compile: () => Promise.reject(new ActionCompilerBusyError('Too many.')),
      close: async () => {},
    };
    const answer = await send({ actionCompiler: busy }, { steps });
    expect([answer.statusCode, answer.headers['retry-after'], answer.json().detail]).toEqual([
      503,
      '5',
      'Too many.',
    ]);
    const slow = createActionCompiler({ threads: 1, timeoutMs: 1_000 });
    const refused = await send({ actionCompiler: slow }, { steps: SLOW.steps });
    await slow.close();
    expect([refused.statusCode, refused.json().attr]).toEqual([400, 'steps']);
  });
});
