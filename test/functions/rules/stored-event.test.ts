import { expect, test } from '@jest/globals';
import { globalsOfStored, readTogether, type StoredEvent } from '../../../functions/rules/stored-event.ts';

const facts = {
  project: { id: 1, name: 'Shop' },
  site: 'https://sluice.example',
  source: { id: '018f0000-0000-7000-8000-000000000001', name: 'F' },
};
const stored = (more: Partial<StoredEvent> = {}): StoredEvent => ({
  ...{ uuid: '018f0000-0000-7000-8000-0000000000e1', event: 'paid', distinct_id: 'ann', elements_chain: '' },
  ...{ timestamp: '2026-01-02T03:04:05.000Z', created_at: '2026-01-02T03:04:06.000Z' },
  ...{ person_id: '018f0000-0000-7000-8000-0000000000a1', person_mode: 'full', groups: null },
  ...{ properties: '{"price":10}', person_properties: '{"plan":"gold"}' },
  ...more,
});
const seen = (row: StoredEvent) => {
  const { event, person } = globalsOfStored(row, facts, 'destination', readTogether(row)) as {
    event: { properties: unknown };
    person?: { properties: unknown };
  };
  return [event.properties, person?.properties];
};

test('who sees the same event at the same time shares what is read of it', () => {
  const row = stored();
  const [one, other] = [seen(row), seen(row)];
  expect(one).toEqual([{ price: 10 }, { plan: 'gold' }]);
  expect(other[0]).toBe(one[0]);
  expect(other[1]).toBe(one[1]);
  // Another event with the same content is another one.
  expect(seen(stored())[0]).not.toBe(one[0]);
});

test('an event without a person has none', () => {
  const row = stored({ person_mode: 'propertyless' });
  const [one, other] = [seen(row), seen(row)];
  expect(one).toEqual([{ price: 10 }, undefined]);
  expect(other[0]).toBe(one[0]);
});
