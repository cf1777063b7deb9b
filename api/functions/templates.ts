import { z } from 'zod';
import { countByTemplate } from '../../functions/rows/functions.ts';
import { TYPE_NAMES } from '../../functions/rules/types.ts';
import { findTemplate, TEMPLATES } from '../../functions/templates/index.ts';
import type { Template } from '../../functions/templates/template.ts';
import type { App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { READ } from './resource.ts';
import { functionTemplate, templateView } from './template-schema.ts';

const TAGS = ['function templates'];
const PUBLIC = '/api/public_hog_function_templates/';
const OWN = '/api/projects/:project_id/hog_function_templates/';
const params = z.object({ project_id: z.string() });

const query = pageQuery.extend({
  type: z
    .string()
    .optional()
    .meta({ description: `Only templates of this type: ${TYPE_NAMES.join(', ')}.` }),
  types: z.string().optional().meta({
    description: 'Only templates of these types, with commas between them. Default: `destination`.',
  }),
  template_id: z.string().optional().meta({ description: 'Only this template.' }),
});

/** Lists the templates that a request asks for. Deprecated ones are left out of lists. */
function wanted({ type, types, template_id: id }: z.output<typeof query>): Template[] {
  const asked = (type || types || 'destination').split(',').map((one) => one.trim());
  return TEMPLATES.filter(
    (one) => one.status !== 'deprecated' && (id === undefined ? asked.includes(one.type) : one.id === id),
  );
}

const isPublic = ({ status }: Template): boolean => status !== 'hidden';

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
/** Puts templates in the order of their names, in which case does not matter. */
const byName = (a: Template, b: Template): number =>
  compare(a.name.toLowerCase(), b.name.toLowerCase()) || compare(a.id, b.id);

/** Adds the routes that list templates, for everybody and for the members of a project. */
export function templateRoutes(app: App, { pool, publicUrl }: FunctionRouteDependencies): void {
  app.get(
    PUBLIC,
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        summary: 'List the templates of functions, by name',
        querystring: query,
        response: { 200: page(functionTemplate) },
      },
    },
    async (request) => {
      const found = wanted(request.query).filter(isPublic).toSorted(byName);
      const { limit, offset } = pageOf(request.query);
      const shown = found.slice(offset, offset + limit).map(templateView);
      return paginated(request, publicUrl, { limit, offset }, found.length, shown);
    },
  );

  app.get(
    `${PUBLIC}:id/`,
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        summary: 'Retrieve a template that is listed for everybody, or a deprecated one',
        params: z.object({ id: z.string() }),
        response: { 200: functionTemplate },
      },
    },
    async ({ params: { id } }) => {
      const template = findTemplate(id);
      if (!template || !isPublic(template)) throw errors.notFound();
      return templateView(template);
    },
  );

  app.get(
    OWN,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List the templates of functions, those that the project uses most first',
        params,
        querystring: query,
        response: { 200: page(functionTemplate) },
      },
    },
    async (request) => {
      const used = await countByTemplate(pool, request.project.id);
      const uses = ({ id }: Template) => used.get(id) ?? 0;
      const found = wanted(request.query).toSorted((a, b) => uses(b) - uses(a) || byName(a, b));
      const { limit, offset } = pageOf(request.query);
      const shown = found.slice(offset, offset + limit).map(templateView);
      return paginated(request, publicUrl, { limit, offset }, found.length, shown);
    },
  );

  app.get(
    `${OWN}:id/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'Retrieve a template of functions',
        params: params.extend({ id: z.string() }),
        response: { 200: functionTemplate },
      },
    },
    async ({ params: { id } }) => {
      const template = findTemplate(id);
      if (!template) throw errors.notFound();
      return templateView(template);
    },
  );
}
