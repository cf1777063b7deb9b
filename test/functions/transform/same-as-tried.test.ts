import { beforeEach, expect, test } from '@jest/globals';
import { TEMPLATES } from '../../../functions/templates/index.ts';
import type { Tenant } from '../../support/api.ts';
import { transformingApi } from './support.ts';

const api = transformingApi();
let anna: Tenant;
beforeEach(async () => {
  anna = await api.createTenant('Anna');
});

const NAMES = 'email, name, $set.email, user.address.street, distinct_id';
/** Values of inputs that a template has no default for. */
const INPUTS: Record<string, unknown> = {
  propertiesToHash: NAMES,
  privateFields: NAMES,
  propertiesToFilter: NAMES,
  salt: 'pepper',
};
const EVENTS = [
  {
    event: 'order paid',
    properties: {
      ...{
        email: 'ada@shop.test',
        name: 'Ada',
        nothing: null,
        list: [1, null, { deep: null }],
        $ip: '81.2.69.142',
      },
      ...{ $current_url: 'https://shop.test/a/123?email=ada@shop.test&x=1#/in?token=1', $referrer: 'no url' },
      ...{ $set: { email: 'ada@shop.test', $current_url: 'https://a.test/?password=1' } },
      ...{ user: { address: { street: 'Long Street', city: 'X' } }, 'user.address.street': 'flat' },
      $raw_user_agent: 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    },
  },
  { event: '$pageview', properties: {} },
  { event: 'Ünïcode \u{1f600}', properties: { email: 5, name: { first: 'Ada' }, $ip: '::1', $set: null } },
];

const transformations = TEMPLATES.filter((one) => one.type === 'transformation');

test.each(transformations.map((one) => [one.id, one] as const))(
  '%s leaves events as it does when it is tried',
  async (id, { inputs_schema }) => {
    const inputs = Object.fromEntries(
      inputs_schema.flatMap(({ key, type, default: value }) => {
        const half = type === 'number' ? 50 : '50';
        const given = key === 'percentage' ? half : (INPUTS[key] ?? value);
        return given === undefined ? [] : [[key, { value: given }]];
      }),
    );
    const own = await api.transform(anna, { template_id: id, inputs, on_error: 'refuse' });
    for (const [index, one] of EVENTS.entries()) {
      const uuid = `0197a3c0-2222-7000-8000-00000000000${index}`;
      const timestamp = '2026-01-02T03:04:05.678Z';
      const event = { ...one, uuid, timestamp, distinct_id: 'ada' };
      const tried = await api.request(
        anna,
        'POST',
        `/api/projects/${anna.projectId}/hog_functions/${own}/invocations/`,
        { configuration: {}, globals: { event: { ...event, elements_chain: '' } } },
      );
      expect([tried.statusCode, tried.json()]).toMatchObject([200, { errors: [] }]);
      const { result } = tried.json();
      // Capture adds the address of the client where the event has none.
      const [stored] = await api.stored(anna, [
        { ...event, properties: { $ip: '127.0.0.1', ...one.properties } },
      ]);
      if (result === null) expect(stored).toBeUndefined();
      else {
        const { $ip: _ip, ...properties } = stored?.properties ?? {};
        const { $ip: _own, ...expected } = result.properties;
        expect({ event: stored?.event, distinct_id: stored?.distinct_id, properties }).toEqual({
          ...{ event: result.event, distinct_id: result.distinct_id },
          properties: expected,
        });
      }
    }
  },
);
