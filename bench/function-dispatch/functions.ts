import type pg from 'pg';
import { uuidv7 } from '../../db/uuid.ts';
import type { FunctionSource } from '../../functions/compile.ts';
import { createFunctionCompiler } from '../../functions/compiler.ts';
import { findTemplate } from '../../functions/templates/index.ts';
import type { Template } from '../../functions/templates/template.ts';

const HOG = "fetch(inputs.url, {'body': {'event': event.event, 'url': event.properties.$current_url}})";
const condition = (key: string, value: unknown, type = 'event', operator = 'exact') => ({
  key,
  value,
  type,
  operator,
});
const pageview = (properties: object[]) => ({
  events: [{ id: '$pageview', type: 'events', properties: [] }],
  properties,
});

/**
 * Filters of twenty functions: five by the name of the event, ten with three conditions, five with the person's. One event
 * in 10,000 matches. With a cohort, the five ask whether it lists the person.
 */
export function twenty(cohortId?: number): object[] {
  const byName = Array.from({ length: 5 }, (_, index) => ({
    events: [{ id: `rare event ${index}`, type: 'events' }],
  }));
  const byProperties = Array.from({ length: 10 }, (_, index) =>
    pageview([
      condition('$browser', 'Chrome'),
      condition('$host', 'example', 'event', 'icontains'),
      condition('$pathname', index === 0 ? '/products/7' : `/nothing/${index}`),
    ]),
  );
  const byPerson = Array.from({ length: 5 }, (_, index) =>
    pageview([
      cohortId === undefined
        ? condition('plan', `plan ${index}`, 'person')
        : condition('id', cohortId, 'cohort', 'in'),
      condition('$os', 'Mac OS X'),
    ]),
  );
  return [...byName, ...byProperties, ...byPerson];
}

const OTHER = 'other event ';
const FIRST_OTHER = `${OTHER}0`;

/** Filters of functions that name other events. */
export const others = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => ({ events: [{ id: `${OTHER}${index}`, type: 'events' }] }));

function nameOfOther(filters: object): string | undefined {
  const { id } = (filters as { events?: { id: string }[] }).events?.[0] ?? {};
  return id?.startsWith(OTHER) ? id : undefined;
}

/** The same function with filters that name another event: compiling thousands would take minutes. */
const renamed = <T extends { filters: object }>(model: T | undefined, name: string): T | undefined =>
  model && {
    ...model,
    filters: JSON.parse(JSON.stringify(model.filters).replaceAll(`"${FIRST_OTHER}"`, JSON.stringify(name))),
  };

/** Stores functions as the API would. */
export async function storeFunctions(
  admin: pg.Client,
  {
    projectId,
    url,
    filters,
    hog = HOG,
    cohorts = [],
  }: {
    projectId: number;
    url: string;
    filters: readonly object[];
    hog?: string;
    cohorts?: NonNullable<FunctionSource['cohorts']>;
  },
): Promise<void> {
  const compiler = createFunctionCompiler();
  const content = {
    hog,
    inputs_schema: [
      { key: 'url', type: 'string' as const, label: 'URL', required: true, secret: false, hidden: false },
    ],
    ...{ inputs: { url: { value: url } }, masking: null, mappings: null },
  };
  const source = { type: 'destination' as const, secrets: { inputs: {}, mappings: [] }, isEnabled: true };
  const surroundings = { testAccounts: [], actions: [], cohorts, now: Date.now(), timezone: 'UTC' };
  try {
    await admin.query('begin');
    let model: Awaited<ReturnType<typeof compiler.compile>> | undefined;
    for (const one of filters) {
      const name = nameOfOther(one);
      let compiled = name === undefined ? undefined : renamed(model, name);
      compiled ??= await compiler.compile(projectId, {
        ...{ ...source, ...surroundings, content: { ...content, filters: one as Record<string, unknown> } },
      });
      if (name === FIRST_OTHER) model = compiled;
      await admin.query(
        `insert into functions (project_id, id, type, name, description, enabled, hog, inputs_schema, inputs, filters, bytecode)
         values ($1, $2, 'destination', 'bench', '', true, $3, $4, $5, $6, $7)`,
        [
          ...[
            projectId,
            uuidv7(),
            HOG,
            JSON.stringify(compiled.inputs_schema),
            JSON.stringify(compiled.inputs),
          ],
          ...[JSON.stringify(compiled.filters), JSON.stringify(compiled.bytecode)],
        ],
      );
    }
    await admin.query('commit');
  } finally {
    await compiler.close();
  }
}

/** Three transformations with which every event is changed: one removes a property that all have. */
const TRANSFORMATIONS: [template: string, inputs: Record<string, { value: unknown }>][] = [
  ['template-geoip', {}],
  ['template-filter-properties', { propertiesToFilter: { value: '$device_id, email' } }],
  ['template-url-masking', {}],
];

/** Stores transformations as the API would. */
export async function storeTransformations(admin: pg.Client, projectId: number): Promise<void> {
  const compiler = createFunctionCompiler();
  try {
    for (const [order, [id, inputs]] of TRANSFORMATIONS.entries()) {
      const { hog, inputs_schema } = findTemplate(id) as Template;
      const compiled = await compiler.compile(projectId, {
        ...{ type: 'transformation', secrets: { inputs: {}, mappings: [] }, isEnabled: true },
        ...{ testAccounts: [], actions: [], now: Date.now(), timezone: 'UTC' },
        content: { hog, inputs_schema, inputs, filters: {}, masking: null, mappings: null },
      });
      await admin.query(
        `insert into functions (project_id, id, type, name, description, enabled, execution_order, on_error, hog,
           inputs_schema, inputs, filters, bytecode)
         values ($1, $2, 'transformation', $3, '', true, $4, 'refuse', $5, $6, $7, $8, $9)`,
        [
          ...[projectId, uuidv7(), id, order, hog, JSON.stringify(compiled.inputs_schema)],
          ...[JSON.stringify(compiled.inputs), JSON.stringify(compiled.filters)],
          JSON.stringify(compiled.bytecode),
        ],
      );
    }
  } finally {
    await compiler.close();
  }
}
