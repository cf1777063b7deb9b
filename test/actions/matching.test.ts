import { describe, expect, test } from '@jest/globals';
import { stepsOf, versionsOf } from '../../actions/reads/steps-of.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { run } from '../../hog/vm/index.ts';
import { actionsForFile } from './support.ts';

const { api, tenants, ask, create } = actionsForFile();

describe('what an action matches', () => {
  const matches = (bytecode: Bytecode, event: object) => {
    const outcome = run(bytecode, { globals: { properties: {}, elements_chain: '', ...event } });
    expect(outcome.status).toBe('finished');
    return outcome.status === 'finished' && outcome.result;
  };
  const click = {
    event: '$autocapture',
    elements_chain: 'a.big:href="/pay"nth-child="1"text="Pay now";div:attr_id="top"',
    elements_chain_href: '/pay',
    elements_chain_texts: ['Pay now'],
    properties: { $current_url: 'https://shop.example/cart?x=1', plan: 'gold' },
  };

  test.each<[string, object, boolean]>([
    ['its event', { event: '$autocapture' }, true],
    ['another event', { event: 'paid' }, false],
    ['any event', {}, true],
    ['the url contains', { url: 'shop.example' }, true],
    ['the url is exactly', { url: 'shop.example', url_matching: 'exact' }, false],
    ['the url by a pattern', { url: '^https://[a-z.]+/cart', url_matching: 'regex' }, true],
    ['the selector', { event: '$autocapture', selector: '#top > a.big' }, true],
    ['another selector', { event: '$autocapture', selector: 'form > a' }, false],
    ['the tag', { event: '$autocapture', tag_name: 'a' }, true],
    ['the text', { event: '$autocapture', text: 'Pay now' }, true],
    ['a part of the text', { event: '$autocapture', text: 'PAY', text_matching: 'contains' }, true],
    ['the link', { event: '$autocapture', href: '/p', href_matching: 'contains' }, true],
    ['another link', { event: '$autocapture', href: '/p' }, false],
    ['a property', { properties: [{ key: 'plan', value: 'gold', type: 'event' }] }, true],
    ['another property', { properties: [{ key: 'plan', value: 'free', type: 'event' }] }, false],
    ['HogQL', { properties: [{ type: 'hogql', key: "properties.plan = 'gold'" }] }, true],
    ['HogQL that is not true', { properties: [{ type: 'hogql', key: 'length(event) > 99' }] }, false],
  ])('%s', async (_what, step, expected) => {
    const { bytecode } = await create({ steps: [step] });
    expect(matches(bytecode, click)).toBe(expected);
  });

  test('any of its steps, and without steps each event', async () => {
    const { bytecode } = await create({ steps: [{ event: 'a' }, { event: 'b' }] });
    expect(['a', 'b', 'c'].map((event) => matches(bytecode, { event }))).toEqual([true, true, false]);
    expect(matches((await create({ steps: [] })).bytecode, click)).toBe(true);
  });
});

describe('other products', () => {
  const ids = (map: Map<number, unknown>) => [...map.keys()].sort();

  test('get the steps of the actions of a project that are not deleted', async () => {
    const [one, gone] = [
      await create({ steps: [{ event: 'a', properties: [{ key: 'k', value: 'v' }] }] }),
      await create({}),
    ];
    const foreign = await create({ steps: [{ event: 'x' }] }, tenants.ben);
    await ask('PATCH', `${gone.id}/`, { deleted: true });
    const wanted = [one.id, gone.id, foreign.id, 2 ** 40, 0, -1, 1.5];
    const steps = await stepsOf(api.pool, tenants.anna.projectId, wanted);
    expect(ids(steps)).toEqual([one.id]);
    expect(steps.get(one.id)).toMatchObject([
      { event: 'a', properties: { values: [{ key: 'k', value: 'v' }] } },
    ]);
    expect(ids(await versionsOf(api.pool, tenants.anna.projectId, wanted))).toEqual([one.id]);
  });

  test('learn by the version that what an action matches has changed, and only then', async () => {
    const { id } = await create({
      name: 'Versioned',
      steps: [{ event: 'a', properties: [{ value: 1, key: 'k' }] }],
    });
    const version = async () => (await versionsOf(api.pool, tenants.anna.projectId, [id])).get(id);
    expect(await version()).toBe(1);
    await ask('PATCH', `${id}/`, { name: 'Other name', deleted: false });
    await ask('PATCH', `${id}/`, { steps: [{ event: 'a', properties: [{ key: 'k', value: 1 }] }] });
    expect(await version()).toBe(1);
    await ask('PATCH', `${id}/`, { steps: [{ event: 'b' }] });
    expect(await version()).toBe(2);
    await ask('PATCH', `${id}/`, { deleted: true });
    expect(await version()).toBeUndefined();
    await ask('PATCH', `${id}/`, { deleted: false });
    expect(await version()).toBe(4);
  });
});
