import { z } from 'zod';
import { TYPE_NAMES } from '../../functions/rules/types.ts';
import { TEMPLATE_STATUSES, type Template } from '../../functions/templates/template.ts';
import { freeForm } from '../fields.ts';

export const functionTemplate = z
  .object({
    id: z.string(),
    type: z.enum(TYPE_NAMES),
    status: z.enum(TEMPLATE_STATUSES),
    free: z.boolean(),
    name: z.string(),
    description: z.string(),
    category: z.array(z.string()),
    icon_url: z.string(),
    hog: z.string(),
    code: z.string(),
    code_language: z.enum(['hog', 'javascript']),
    inputs_schema: z.array(freeForm),
    filters: freeForm.nullable(),
    masking: freeForm.nullable(),
    mappings: z.array(freeForm).nullable(),
    mapping_templates: z.array(freeForm).nullable(),
  })
  .meta({ id: 'FunctionTemplate' });
export type TemplateView = z.output<typeof functionTemplate>;

export function templateView(template: Template): TemplateView {
  const { hog, type } = template;
  const isSite = type === 'site_app' || type === 'site_destination';
  return {
    ...template,
    ...{ code: hog, code_language: isSite ? 'javascript' : 'hog', free: true, mappings: null },
  };
}
