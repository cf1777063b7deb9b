import { z } from 'zod';
import {
  type DefinitionKind,
  type DefinitionRow,
  findDefinition,
  listDefinitions,
} from '../../db/definitions.ts';
import { CAMPAIGN_PROPERTIES } from '../../properties/initial-properties.ts';
import { propertiesOfEvents } from '../../queries/commands/event-properties.ts';
import { isUuid } from '../../values/uuid.ts';
import { askerOf } from '../asker.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';

/** Properties that say what becomes of an event. Nobody filters by them, so they are found by their exact name only. */
const HIDDEN = [
  ...['distinct_id', '$set', '$set_once', '$unset', '$groups', '$group_type', '$group_key', '$group_set'],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
];
const FLAG_PREFIX = '$feature/';
/** Numbers that nobody adds up. */
const NO_NUMBERS = ['distinct_id', 'timestamp'];

const common = {
  id: z.guid(),
  name: z.string(),
  description: z.null().meta({ description: 'Definitions have no descriptions.' }),
  tags: z.array(z.string()).meta({ description: 'Definitions have no tags.' }),
  verified: z.literal(false),
  hidden: z.literal(false),
  created_at: timestamp.meta({ description: 'When the name was first seen.' }),
  last_seen_at: timestamp.meta({ description: 'When the name was last seen, give or take an hour.' }),
};

const eventDefinition = z
  .object({ ...common, last_updated_at: timestamp, owner: z.null(), is_action: z.literal(false) })
  .meta({ id: 'EventDefinition' });

const propertyDefinition = z
  .object({
    ...common,
    property_type: z.enum(['String', 'Numeric', 'Boolean', 'DateTime']).nullable().meta({
      description: 'What its first value was. Null: no value was a text, a number or a boolean.',
    }),
    is_numerical: z.boolean(),
    type: z.enum(['event', 'person', 'group']).meta({ description: 'Whose property it is.' }),
    group_type_index: z.int().nullable(),
    is_seen_on_filtered_events: z.boolean().nullable().meta({
      description: 'Whether the newest of the events in `event_names` have it. Null: none are named.',
    }),
  })
  .meta({ id: 'PropertyDefinition' });

const shared = ({ id, name, created_at, last_seen_at }: DefinitionRow) => ({
  ...{ id, name, description: null, tags: [], verified: false as const, hidden: false as const },
  ...{ created_at, last_seen_at },
});

const eventView = (row: DefinitionRow): z.output<typeof eventDefinition> => ({
  ...shared(row),
  ...{ last_updated_at: row.last_seen_at, owner: null, is_action: false },
});

const TYPES: Readonly<Record<'event' | 'person' | 'group', DefinitionKind>> = {
  event: 'event_property',
  person: 'person_property',
  group: 'group_property',
};
type PropertyOwner = keyof typeof TYPES;

const propertyView = (
  row: DefinitionRow,
  seen?: ReadonlySet<string>,
): z.output<typeof propertyDefinition> => ({
  ...shared(row),
  property_type: row.property_type,
  is_numerical: row.property_type === 'Numeric',
  type: row.kind.replace('_property', '') as PropertyOwner,
  group_type_index: row.group_type_index < 0 ? null : row.group_type_index,
  is_seen_on_filtered_events: seen?.has(row.name) ?? null,
});

const search = z
  .string()
  .max(400)
  .optional()
  .meta({ description: 'Only names that have each of these words in them, in any case.' });
const yesOrNo = z
  .enum(['true', 'false', 'True', 'False'])
  .transform((text) => text.toLowerCase() === 'true')
  .optional();
const hidden = yesOrNo.meta({ description: 'Has no effect: no name is hidden.' });
const namesInJson = z
  .string()
  .max(100_000)
  .transform((text, context) => {
    const names = parsedNames(text);
    if (names) return names;
    context.addIssue({ code: 'custom', message: 'Write a list of names as JSON, such as ["a","b"].' });
    return z.NEVER;
  })
  .optional();

function parsedNames(text: string): string[] | undefined {
  try {
    const names: unknown = JSON.parse(text);
    return Array.isArray(names) && names.every((one) => typeof one === 'string') ? names : undefined;
  } catch {
    return undefined;
  }
}

const eventQuery = pageQuery.extend({
  search,
  exclude_hidden: hidden,
  event_type: z.enum(['all', 'event', 'event_custom', 'event_posthog']).optional().meta({
    description:
      '`event_custom`: only names that do not begin with `$`. `event_posthog`: only those that do.',
  }),
  ordering: z.enum(['name', '-name', 'last_seen_at', '-last_seen_at']).optional().meta({
    description: 'Default: what was seen last comes first.',
  }),
});

const propertyQuery = pageQuery.extend({
  search,
  exclude_hidden: hidden,
  exclude_core_properties: yesOrNo.meta({
    description: '`true`: without names that begin with `$`, and those of campaigns, such as `utm_source`.',
  }),
  type: z.enum(['event', 'person', 'group']).optional().meta({
    description: 'Whose properties. Default: `event`.',
  }),
  group_type_index: z
    .string()
    .regex(/^[0-4]$/, 'The index of a type of groups is 0 to 4.')
    .transform(Number)
    .optional()
    .meta({ description: 'The type of groups. Needed with the type `group`, and only there.' }),
  properties: z
    .string()
    .max(100_000)
    .optional()
    .meta({ description: 'Only these names, separated by commas.' }),
  excluded_properties: namesInJson.meta({ description: 'A list of names, as JSON, that are left out.' }),
  is_numerical: yesOrNo.meta({ description: '`true`: only properties whose values are numbers.' }),
  is_feature_flag: yesOrNo.meta({
    description: 'Whether the names begin with `$feature/`. Default: all names.',
  }),
  event_names: namesInJson.meta({
    description:
      'A list of names of events, as JSON. Then `is_seen_on_filtered_events` says whether the newest of these events have the ' +
      'property: 1,000 of them at most, among the newest 100,000 events of the last 30 days.',
  }),
  filter_by_event_names: yesOrNo.meta({
    description: '`true`: only properties that are seen on the events in `event_names`.',
  }),
});

const termsOf = (text: string | undefined) => text?.split(/\s+/).filter((one) => one !== '') ?? [];

const params = z.object({ project_id: z.string() });
const oneOf = z.object({ project_id: z.string(), id: z.string() });

/** Adds the routes that list the names of events and properties that a project uses. */
export function definitionRoutes(app: App, { pool, reader, definitions, config }: ApiDependencies): void {
  async function find(projectId: number, id: string, isWanted: (row: DefinitionRow) => boolean) {
    const row = isUuid(id) ? await findDefinition(pool, projectId, id) : undefined;
    if (!row || !isWanted(row)) throw errors.notFound();
    return row;
  }

  app.get(
    '/api/projects/:project_id/event_definitions/',
    {
      config: { access: { scope: 'event_definition:read' } },
      schema: {
        tags: ['definitions'],
        summary: 'List the names of events, last seen first',
        params,
        querystring: eventQuery,
        response: { 200: page(eventDefinition) },
      },
    },
    async (request) => {
      const { project, query } = request;
      await definitions.flush(project.id);
      const wanted = pageOf(query);
      const isCustom = query.event_type === 'event_custom';
      const { count, rows } = await listDefinitions(pool, project.id, {
        ...wanted,
        kind: 'event',
        terms: termsOf(query.search),
        prefix: isCustom || query.event_type === 'event_posthog' ? { text: '$', has: !isCustom } : undefined,
        order: query.ordering ?? '-last_seen_at',
      });
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(eventView));
    },
  );

  app.get(
    '/api/projects/:project_id/event_definitions/:id/',
    {
      config: { access: { scope: 'event_definition:read' } },
      schema: {
        tags: ['definitions'],
        summary: 'Retrieve the name of an event',
        params: oneOf,
        response: { 200: eventDefinition },
      },
    },
    async ({ project, params: { id } }) =>
      eventView(await find(project.id, id, ({ kind }) => kind === 'event')),
  );

  app.get(
    '/api/projects/:project_id/property_definitions/',
    {
      config: { access: { scope: 'property_definition:read' } },
      schema: {
        tags: ['definitions'],
        summary: 'List the names of properties of events, persons or groups, by name',
        params,
        querystring: propertyQuery,
        response: { 200: page(propertyDefinition) },
      },
    },
    async (request, reply) => {
      const { project, query } = request;
      const { type = 'event', group_type_index: groupTypeIndex } = query;
      if ((type === 'group') !== (groupTypeIndex !== undefined)) {
        const message =
          type === 'group'
            ? 'Properties of groups need the type of the groups: group_type_index.'
            : 'Only properties of groups have a group_type_index.';
        throw errors.validation('invalid_input', message, 'group_type_index');
      }
      await definitions.flush(project.id);
      const wanted = pageOf(query);
      const { properties, is_numerical: numerical, is_feature_flag: flag, event_names: events } = query;
      const seen =
        type === 'event' && events?.length
          ? new Set(await propertiesOfEvents({ reader }, askerOf(request, reply), events))
          : undefined;
      const asked = properties?.split(',');
      const names =
        seen && query.filter_by_event_names ? (asked ?? [...seen]).filter((name) => seen.has(name)) : asked;
      const { count, rows } = await listDefinitions(pool, project.id, {
        ...wanted,
        kind: TYPES[type],
        groupTypeIndex,
        terms: termsOf(query.search),
        names,
        excluded: [
          ...(query.excluded_properties ?? []),
          ...(type === 'event' && !asked ? HIDDEN : []),
          ...(numerical ? NO_NUMBERS : []),
          ...(query.exclude_core_properties ? CAMPAIGN_PROPERTIES : []),
        ],
        isNumerical: numerical || undefined,
        isOwn: query.exclude_core_properties,
        prefix: flag === undefined ? undefined : { text: FLAG_PREFIX, has: flag },
        order: 'name',
      });
      const results = rows.map((row) => propertyView(row, seen));
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, results);
    },
  );

  app.get(
    '/api/projects/:project_id/property_definitions/:id/',
    {
      config: { access: { scope: 'property_definition:read' } },
      schema: {
        tags: ['definitions'],
        summary: 'Retrieve the name of a property',
        params: oneOf,
        response: { 200: propertyDefinition },
      },
    },
    async ({ project, params: { id } }) =>
      propertyView(await find(project.id, id, ({ kind }) => kind !== 'event')),
  );
}
