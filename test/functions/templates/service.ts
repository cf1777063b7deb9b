import { expect } from '@jest/globals';
import type { Answer, Trials } from './trial.ts';

/** The secret of every account in these tests. */
export const SECRET = 'key-of-the-test-5up3r';
/** A person whose values have characters with a meaning in URLs, JSON and Hog. */
export const ODD = {
  id: '018f0000-0000-7000-8000-0000000000ab',
  name: "o'hara+1@shop.test",
  properties: { email: "o'hara+1@shop.test", first_name: 'Ö"{x}\\', last_name: "&=?'<ü>", phone: '+1 555' },
};

export interface ServiceCase {
  template: string;
  inputs: Record<string, unknown>;
  integration?: { kind: string; config: Record<string, unknown> };
  event?: object;
  answers?: Answer[];
  /** What the service hears, exactly, request by request. Of the headers, those that it documents. */
  requests: { method: string; url: string; headers: Record<string, string>; body: unknown }[];
  /** An answer of the service that refuses, and what the function says about it. */
  refusal: Answer;
  says: string;
  /** Inputs of an event that lacks what is needed. */
  without?: Record<string, unknown>;
}

/** Tries a template as its service documents its interface. */
export async function checkService(trials: Trials, given: ServiceCase): Promise<void> {
  const { template, inputs, integration, event = {}, answers, without } = given;
  const common = { event, ...(integration ? { integration } : {}) };
  const tried = await trials.run(template, { ...common, inputs, ...(answers ? { answers } : {}) });
  expect(tried.errors).toEqual([]);
  expect(tried.status).toBe('success');
  expect(trials.heard.map(({ method, url, body }) => ({ method, url, body }))).toEqual(
    given.requests.map(({ method, url, body }) => ({ method, url, body })),
  );
  given.requests.forEach(({ headers }, index) => {
    expect(trials.heard[index]?.headers).toMatchObject(headers);
  });
  expect(JSON.stringify(tried)).not.toContain(SECRET);

  const refused = await trials.run(template, { ...common, inputs, answers: [given.refusal] });
  expect(refused.status).toBe('error');
  expect(refused.errors.join('\n')).toContain(given.says);
  expect(JSON.stringify(refused)).not.toContain(SECRET);

  if (without) {
    const skipped = await trials.run(template, { ...common, inputs: { ...inputs, ...without } });
    expect(skipped.errors).toEqual([]);
    expect(trials.heard).toEqual([]);
    expect(skipped.logs.map(({ message }) => message).join('\n')).toContain('It is skipped.');
  }

  // Values with special characters arrive as they are.
  const odd = await trials.run(template, {
    ...{ ...common, inputs, person: ODD },
    ...(answers ? { answers } : {}),
  });
  expect(odd.errors).toEqual([]);
  const { email, first_name: first, last_name: last } = ODD.properties;
  const heard = JSON.stringify(trials.heard.map(({ body }) => body));
  const expected = JSON.stringify(given.requests.map(({ body }) => body));
  for (const [plain, other] of [
    ['ada@shop.test', email],
    ['"Ada"', first],
    ['"Lovelace"', last],
  ] as const) {
    if (expected.includes(plain)) expect(heard).toContain(JSON.stringify(other).slice(1, -1));
  }
}
