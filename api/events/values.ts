import { z } from 'zod';
import { valuesOf } from '../../queries/commands/values.ts';
import { conditionValues } from '../../queries/rules/values.ts';
import { askerOf } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';

const MOST_NAMES = 100;
const text = z.string().max(400);
const texts = z.union([text, z.array(text).max(MOST_NAMES)]);
const CONDITION = /^properties_/;

const valuesQuery = z
  .object({
    key: text.optional().meta({
      description:
        'The name of the property. `custom_event`: the names of all events that do not begin with `$`.',
    }),
    value: text.optional().meta({ description: 'Only values with this text in them, in any case.' }),
    event_name: texts.optional().meta({ description: 'Only events with this name. May be repeated.' }),
    is_column: z.enum(['true', 'false']).optional().meta({
      description:
        'Whether the key is a column of events: `event`, `distinct_id`, `person_id`, `session_id` or `window_id`.',
    }),
    format: z.literal('json').optional(),
  })
  .catchall(texts);
type ValuesQuery = z.output<typeof valuesQuery>;

const KNOWN = new Set(Object.keys(valuesQuery.shape));
const listOf = (one: string | string[] | undefined) => (one === undefined ? [] : [one].flat());

/** Reads the conditions on properties. A misspelt parameter would otherwise show everything. */
function conditionsOf(query: ValuesQuery) {
  const others = Object.entries(query).filter(([name]) => !KNOWN.has(name));
  return others.map(([name, value]) => {
    if (!CONDITION.test(name)) {
      throw errors.validation('invalid_input', `There is no field or parameter "${name}" here.`, name);
    }
    const given = listOf(value as string | string[] | undefined);
    return { name: name.replace(CONDITION, ''), values: given.flatMap(conditionValues) };
  });
}

/** Adds the route that completes values of properties. */
export function eventValueRoutes(app: App, { pool, reader, definitions }: ApiDependencies): void {
  app.get(
    '/api/projects/:project_id/events/values/',
    {
      config: { access: { scope: 'query:read' } },
      schema: {
        tags: ['events'],
        summary: 'List values of a property of events, the shortest first',
        description:
          'Looks at the newest 100,000 events of the last seven days, and lists ten values at most. `properties_NAME` is a ' +
          'condition on another property: a value, or several as a JSON list.',
        params: z.object({ project_id: z.string() }),
        querystring: valuesQuery,
        response: { 200: z.array(z.object({ name: z.string() }).meta({ id: 'PropertyValue' })) },
      },
    },
    async (request, reply) => {
      const { query, project } = request;
      if (!query.key) throw errors.validation('invalid_input', 'You must provide a key', 'key');
      const conditions = conditionsOf(query);
      await definitions.flush(project.id);
      const values = await valuesOf({ pool, reader }, askerOf(request, reply), {
        ...{ key: query.key, isColumn: query.is_column === 'true', search: query.value ?? '' },
        ...{ events: listOf(query.event_name), conditions },
      });
      reply.header('cache-control', 'max-age=10');
      return values.map((name) => ({ name }));
    },
  );
}
