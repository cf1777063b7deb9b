import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { compileFunction } from '../../../functions/compile.ts';
import { NO_SECRETS } from '../../../functions/reads/secrets.ts';
import type { InputSchema } from '../../../functions/rules/definition.ts';
import { TEMPLATES } from '../../../functions/templates/index.ts';
import { createOwnParser, type Parser } from '../../../hog/parser/index.ts';
import { KIND_NAMES } from '../../../integrations/kinds/registry.ts';
import { withDefaults } from './trial.ts';

let parser: Parser;
beforeAll(async () => {
  ({ parser } = await createOwnParser());
});
afterAll(() => parser.close());

test('ids are unique', () => {
  const ids = TEMPLATES.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

/** A value that an input without a default accepts. */
const VALUES: Partial<Record<InputSchema['type'], unknown>> = {
  ...{ number: 1, boolean: true, dictionary: { a: 'b' }, integration: 1, json: { a: 1 } },
};

describe.each(TEMPLATES.map((one) => [one.id, one] as const))('%s', (_id, template) => {
  test('explains itself', () => {
    expect(template.icon_url).toMatch(/^\/static\/services\/[a-z0-9-]+\.svg$/);
    expect(template.description).toMatch(/\.$/);
    expect(template.category.length).toBeGreaterThan(0);
    for (const { key, label, required, default: value, description } of template.inputs_schema) {
      expect([key, label]).toEqual([key, expect.stringMatching(/^\S/)]);
      if (required && value === undefined) expect([key, description]).toEqual([key, expect.any(String)]);
    }
  });

  test('names integrations that exist, and secrets without a default', () => {
    for (const one of template.inputs_schema) {
      if (one.type === 'integration') expect(KIND_NAMES).toContain(one.integration);
      if (one.secret) expect(one.default).toBeUndefined();
      if (one.integration_key) {
        expect(template.inputs_schema.map(({ key }) => key)).toContain(one.integration_key);
      }
    }
  });

  test('compiles without warnings, with its defaults', async () => {
    const inputs = template.inputs_schema.flatMap(({ key, type, default: value, required }) => {
      if (value !== undefined && value !== null) return [[key, { value }]];
      return required ? [[key, { value: VALUES[type] ?? 'text' }]] : [];
    });
    const compiled = await compileFunction(parser, {
      type: template.type,
      content: {
        ...{ hog: template.hog, inputs_schema: template.inputs_schema, masking: template.masking },
        ...{
          filters: template.filters ?? {},
          mappings: template.mapping_templates?.map((one) => withDefaults(one)) ?? null,
        },
        inputs: Object.fromEntries(inputs),
      },
      ...{ secrets: NO_SECRETS, isEnabled: true, testAccounts: [], actions: [], now: 0, timezone: 'UTC' },
    });
    expect(compiled.warnings).toEqual([]);
  });
});
