// The recipes of CONTRIBUTING.md, each followed once: what its reader writes. test/recipes/recipes.test.ts does this in a copy
// of the tree.

export interface Followed {
  /** The heading of the recipe. */
  heading: string;
  /** New files, each with the words by which the recipe names its place. */
  files: readonly { file: string; toldAs: string; text: string }[];
  /** Changes of files that are there, and that the recipe names: a text, and what comes in its place. */
  changes: readonly { file: string; from: string; to: string }[];
}

const product: Followed = {
  heading: 'Adding a product',
  files: [
    {
      file: 'jottings/rows/jottings.ts',
      toldAs: '`rows/`',
      text: `import type { Queryable } from '../../db/pool.ts';

export async function countJottings(queryable: Queryable): Promise<number> {
  const { rows } = await queryable.query('select count(*)::int as count from jottings');
  return rows[0].count;
}
`,
    },
    {
      file: 'jottings/commands/create.ts',
      toldAs: '`commands/`',
      text: `import { type Pool, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { audit } from '../../tenancy/audit.ts';
import { countJottings } from '../rows/jottings.ts';

/** Makes a jotting. */
export async function createJotting(deps: { pool: Pool }, actor: Actor, projectId: number, text: string): Promise<number> {
  if (text === '') throw refuse.invalid('text', 'The text of a jotting must not be empty.');
  return transaction(deps.pool, async (client) => {
    await client.query('insert into jottings (project_id, id, text) values ($1, gen_random_uuid(), $2)', [projectId, text]);
    await audit(client, actor, { projectId, scope: 'Jotting', activity: 'created', itemId: text });
    return countJottings(client);
  });
}
`,
    },
    {
      file: 'db/migrations/9999-jottings.sql',
      toldAs: '`db/migrations/NNNN-words.sql`',
      text: `create table jottings (
  project_id integer not null,
  id uuid not null,
  text text not null,
  primary key (project_id, id)
);
`,
    },
    {
      file: 'jottings/manifest.ts',
      toldAs: '`<product>/manifest.ts`',
      text: `import type { Pool } from '../db/pool.ts';
import type { Product } from '../tenancy/product.ts';
import { countJottings } from './rows/jottings.ts';

export const JOTTINGS: Product<{ pool: Pool }> = {
  name: 'jottings',
  docs: 'docs/jottings.md',
  tables: [{ name: 'jottings', kind: 'configuration' }],
  sealed: [],
  scopes: ['jotting'],
  maintenance: [{ name: 'countJottings', summary: 'jottings counted', run: ({ pool }) => countJottings(pool) }],
};
`,
    },
    {
      file: 'api/jottings/jottings.ts',
      toldAs: '`api/<product>/`',
      text: `import { z } from 'zod';
import { createJotting } from '../../jottings/commands/create.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';

export function jottingRoutes(app: App, { pool }: ApiDependencies): void {
  app.post(
    '/api/projects/:project_id/jottings/',
    {
      config: { access: { scope: 'jotting:write' } },
      schema: {
        tags: ['jottings'],
        summary: 'Make a jotting',
        params: z.object({ project_id: z.string() }),
        body: z.object({ text: z.string() }),
        response: { 201: z.object({ count: z.int() }) },
      },
    },
    async (request, reply) => {
      const count = await createJotting({ pool }, actorOf(request), request.project.id, request.body.text);
      return reply.code(201).send({ count });
    },
  );
}
`,
    },
    {
      file: 'cli/commands/jottings.ts',
      toldAs: '`cli/commands/`',
      text: `import type { Command } from 'commander';
import { createJotting } from '../../jottings/commands/create.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { say, withPool } from '../context.ts';

export function jottingsCommand(program: Command): void {
  program
    .command('jotting <project> <text>')
    .description('Make a jotting in a project.')
    .action((project: string, text: string) =>
      withPool(async (pool) => {
        say(\`There are \${await createJotting({ pool }, OPERATOR, Number(project), text)}.\`);
      }),
    );
}
`,
    },
    { file: 'docs/jottings.md', toldAs: '`docs/`', text: '# Jottings\n\nTexts of a project.\n' },
  ],
  changes: [
    {
      file: 'products.ts',
      from: 'import { QUERIES }',
      to: "import { JOTTINGS } from './jottings/manifest.ts';\nimport { QUERIES }",
    },
    { file: 'products.ts', from: 'export const PRODUCTS = [', to: 'export const PRODUCTS = [JOTTINGS, ' },
    {
      file: 'api/routes.ts',
      from: 'import type { Lane }',
      to: "import { jottingRoutes } from './jottings/jottings.ts';\nimport type { Lane }",
    },
    {
      file: 'api/routes.ts',
      from: '    organizationRoutes,',
      to: '    jottingRoutes,\n    organizationRoutes,',
    },
    {
      file: 'cli/program.ts',
      from: "  { names: ['user'],",
      to: "  { names: ['jotting'], load: async () => (await import('./commands/jottings.ts')).jottingsCommand },\n  { names: ['user'],",
    },
    { file: 'test/architecture/rules.ts', from: '  queries: [],\n', to: '  queries: [],\n  jottings: [],\n' },
  ],
};

const route: Followed = {
  heading: 'Adding a route',
  files: [
    {
      file: 'db/stamps.ts',
      toldAs: '`db/<table>.ts`',
      text: `import type { Queryable } from './pool.ts';

export async function countStamps(queryable: Queryable, projectId: number): Promise<number> {
  const { rows } = await queryable.query('select count(*)::int as count from stamps where project_id = $1', [projectId]);
  return rows[0].count;
}
`,
    },
    {
      file: 'db/migrations/9998-stamps.sql',
      toldAs: '`db/migrations/NNNN-words.sql`',
      text: `create table stamps (
  project_id integer not null,
  at timestamptz not null,
  primary key (project_id, at)
);
`,
    },
    {
      file: 'api/people/stamps.ts',
      toldAs: '`api/<area>/<resource>.ts`',
      text: `import { z } from 'zod';
import { countStamps } from '../../db/stamps.ts';
import type { ApiDependencies, App } from '../dependencies.ts';

export function stampRoutes(app: App, { pool }: ApiDependencies): void {
  app.get(
    '/api/projects/:project_id/stamps/',
    {
      config: { access: { scope: 'person:read' } },
      schema: {
        tags: ['persons'],
        summary: 'Count stamps',
        params: z.object({ project_id: z.string() }),
        response: { 200: z.object({ count: z.int() }) },
      },
    },
    async ({ project }) => ({ count: await countStamps(pool, project.id) }),
  );
}
`,
    },
  ],
  changes: [
    {
      file: 'api/routes.ts',
      from: 'import type { Lane }',
      to: "import { stampRoutes } from './people/stamps.ts';\nimport type { Lane }",
    },
    { file: 'api/routes.ts', from: '    groupRoutes,', to: '    groupRoutes,\n    stampRoutes,' },
    {
      file: 'db/project-tables.ts',
      from: 'export const CORE_TABLES: readonly ProjectTable[] = [',
      to: "export const CORE_TABLES: readonly ProjectTable[] = [\n  { name: 'stamps', kind: 'data' },",
    },
  ],
};

const workflow: Followed = {
  heading: 'Adding a workflow',
  files: [
    {
      file: 'workflows/jot.ts',
      toldAs: '`workflows/<name>.ts`',
      text: `import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const { jotNow } = proxyActivities<Activities>({ startToCloseTimeout: '1 minute' });

/** Counts what there is. */
export async function jot(projectId: number): Promise<number> {
  return jotNow(projectId);
}
`,
    },
    {
      file: 'surveys/runs/jot.ts',
      toldAs: '`runs/`',
      text: `import type { Pool } from '../../db/pool.ts';
import type { Work } from '../../tenancy/product.ts';

/** Counts the surveys of a project. */
export async function jot(deps: { pool: Pool }, projectId: number, { signal, beat }: Work): Promise<number> {
  signal.throwIfAborted();
  beat();
  const { rows } = await deps.pool.query('select count(*)::int as count from surveys where project_id = $1', [projectId]);
  return rows[0].count;
}
`,
    },
    {
      file: 'activities/jot.ts',
      toldAs: '`activities/<product>.ts`',
      text: `import type { Pool } from '../db/pool.ts';
import { jot } from '../surveys/runs/jot.ts';
import { inActivity } from './work.ts';

export const createJotActivities = (deps: { pool: Pool }) => ({
  jotNow: (projectId: number) => inActivity((work) => jot(deps, projectId, work)),
});
`,
    },
    {
      file: 'surveys/temporal.ts',
      toldAs: '`<product>/temporal.ts`',
      text: `/** What surveys need of Temporal. */
export interface SurveyTemporal {
  jot(projectId: number): Promise<void>;
}
`,
    },
    {
      file: 'schedules/surveys/survey-schedules.ts',
      toldAs: '`schedules/<product>/`',
      text: `import type { Client } from '@temporalio/client';
import type { SurveyTemporal } from '../../surveys/temporal.ts';
import { JOT, JOT_KIND, searchAttributes } from '../../workflows/names.ts';

export const createSurveySchedules = (client: Client, taskQueue: string): SurveyTemporal => ({
  async jot(projectId) {
    await client.workflow.start(JOT, {
      ...{ workflowId: \`jot-\${projectId}\`, taskQueue, args: [projectId] },
      typedSearchAttributes: [
        { key: searchAttributes.kind, value: JOT_KIND },
        { key: searchAttributes.project, value: projectId },
      ],
    });
  },
});
`,
    },
  ],
  changes: [
    {
      file: 'workflows/index.ts',
      from: 'export { maintenance }',
      to: "export { jot } from './jot.ts';\nexport { maintenance }",
    },
    {
      file: 'workflows/names.ts',
      from: "export const NOTICE = 'notice';",
      to: "export const NOTICE = 'notice';\nexport const JOT = 'jot';\nexport const JOT_KIND = 'jot';",
    },
    {
      file: 'activities/index.ts',
      from: 'import { createMaintenanceActivities }',
      to: "import { createJotActivities } from './jot.ts';\nimport { createMaintenanceActivities }",
    },
    {
      file: 'activities/index.ts',
      from: '    ...createFlagActivities(deps),\n',
      to: '    ...createFlagActivities(deps),\n    ...createJotActivities(deps),\n',
    },
    {
      file: 'schedules/schedules.ts',
      from: "import { createFlagSchedules } from './flags/flag-schedules.ts';",
      to: "import { createFlagSchedules } from './flags/flag-schedules.ts';\nimport { createSurveySchedules } from './surveys/survey-schedules.ts';",
    },
    {
      file: 'schedules/schedules.ts',
      from: '  /** What functions need from Temporal. */',
      to: '  surveys: ReturnType<typeof createSurveySchedules>;\n  /** What functions need from Temporal. */',
    },
    {
      file: 'schedules/schedules.ts',
      from: '    flags: createFlagSchedules(',
      to: '    surveys: createSurveySchedules(client, options.SLUICE_TASK_QUEUE),\n    flags: createFlagSchedules(',
    },
  ],
};

const destination: Followed = {
  heading: 'Adding a destination',
  files: [
    {
      file: 'destinations/paper-tape/paper-tape.ts',
      toldAs: '`destinations/<type>/`',
      text: `import { z } from 'zod';
import { secret } from '../config.ts';
import type { RowsDestination } from '../destination.ts';

const fields = z.object({
  host: z.string().describe('Host of the punch.'),
  token: secret(z.string()).describe('Token of the punch.'),
});

/** Punches nothing. */
export const paperTape: RowsDestination<z.output<typeof fields>> = {
  kind: 'rows',
  types: ['PaperTape'],
  fields,
  address: ({ host }) => ({ host }),
  columns: 'files',
  takesQuery: true,
  takesOpenEnd: true,
  docs: { once: 'it has one tape', address: ['\`host\`'] },
  steps: [],
  async deliver(_config, _surroundings, delivery) {
    let bytes = 0;
    for await (const chunk of delivery.read()) bytes += chunk.length;
    await delivery.fence?.();
    return { rows: 0, bytes, written: 0, rejected: 0, rejections: [] };
  },
};
`,
    },
    {
      file: 'test/destinations/paper-tape/subject.ts',
      toldAs: '`test/destinations/<type>/subject.ts`',
      text: "export const waiver = 'It keeps nothing.';\n",
    },
  ],
  changes: [
    {
      file: 'destinations/registry.ts',
      from: 'import { postgres }',
      to: "import { paperTape } from './paper-tape/paper-tape.ts';\nimport { postgres }",
    },
    { file: 'destinations/registry.ts', from: 'noOp]', to: 'noOp, paperTape]' },
    {
      file: 'test/destinations/config.test.ts',
      from: "  ['NoOp', {}],\n",
      to: "  ['NoOp', {}],\n  ['PaperTape', { host: 'h', token: 'canary' }],\n",
    },
    {
      file: 'test/destinations/config.test.ts',
      from: "  ['NoOp', ['arg', 'exclude_events', 'include_events']],\n",
      to: "  ['NoOp', ['arg', 'exclude_events', 'include_events']],\n  ['PaperTape', ['host', 'token']],\n",
    },
  ],
};

const model: Followed = {
  heading: 'Adding a model',
  files: [
    {
      file: 'models/tombstones/tombstones.ts',
      toldAs: '`models/<name>/`',
      text: `import type { Column } from '../../formats/columns.ts';
import { sql } from '../../hog/sql/index.ts';
import { boundsOf, certain } from '../changes.ts';
import { fieldsOf, type Model } from '../model.ts';

const COLUMNS: readonly Column[] = [
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'group_key', type: 'string', nullable: false },
  { name: 'version', type: 'int64', nullable: false },
];

/** The groups that were deleted within an interval. */
export const tombstones = {
  name: 'tombstones',
  row: 'tombstone',
  columns: { files: fieldsOf(COLUMNS), tables: fieldsOf(COLUMNS) },
  storedTexts: [],
  source: (interval) => ({
    schema: {
      tables: {
        tombstones: {
          name: 'tombstones',
          from: (_project, parameters) => {
            const [from, to] = boundsOf(interval, parameters);
            return sql\`(select * from deleted_groups d where d.changed_at >= \${from} and d.changed_at < \${to}) as changed\`;
          },
          project: sql\`project_id\`,
          fields: {
            team_id: certain('int', (t) => sql\`\${t}.project_id\`),
            group_key: certain('string', (t) => sql\`\${t}.group_key\`),
            version: certain('int', (t) => sql\`\${t}.version\`),
          },
        },
      },
    },
    where: [],
    settings: {},
  }),
  isOfEvents: false,
  changes: true,
  expires: false,
  firstData: {
    sql: 'select min(changed_at) as first from deleted_groups where project_id = $1 and changed_at >= $2 and changed_at < $3',
    isByWeek: false,
  },
  table: {
    keys: [['team_id', 'group_key']],
    newer: { order: ['version'], finer: [], strictly: true },
    shortTexts: [],
  },
  docs: { rows: 'deleted groups', order: 'none', insertedAt: 'the time of the deletion', fields: 'the columns above' },
} as const satisfies Model;
`,
    },
    {
      file: 'test/models/tombstones.test.ts',
      toldAs: '`test/models/<name>.test.ts`',
      text: `import { expect, test } from '@jest/globals';
import { modelOf } from '../../models/index.ts';

test('has keys', () => {
  expect(modelOf('tombstones').table?.keys).toEqual([['team_id', 'group_key']]);
});
`,
    },
  ],
  changes: [
    {
      file: 'models/registry.ts',
      from: "import { sessions } from './sessions/sessions.ts';\n",
      to: "import { sessions } from './sessions/sessions.ts';\nimport { tombstones } from './tombstones/tombstones.ts';\n",
    },
    { file: 'models/registry.ts', from: 'sessions, groups]', to: 'sessions, groups, tombstones]' },
  ],
};

const setting: Followed = {
  heading: 'Adding a setting',
  files: [],
  changes: [
    {
      file: 'config.ts',
      from: '  SLUICE_NOTICE_WEBHOOK: z',
      to: "  SLUICE_JOTTINGS: positive.default(17).describe('Number of jottings.'),\n  SLUICE_NOTICE_WEBHOOK: z",
    },
  ],
};

export const FOLLOWED: readonly Followed[] = [product, route, workflow, destination, model, setting];
