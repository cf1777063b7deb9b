// Parts that many templates share.
import type { InputSchema } from '../rules/definition.ts';
import type { Template } from './template.ts';

type Given = Pick<InputSchema, 'key' | 'label'> & Partial<InputSchema>;

/** An input. Unless it says otherwise, it is an optional text that everybody may see. */
export const input = (given: Given): InputSchema => ({
  ...{ type: 'string', required: false, secret: false, hidden: false },
  ...given,
});

export const DEBUG = input({
  key: 'debug',
  type: 'boolean',
  label: 'Log responses',
  description: 'Writes the answers of the service into the log.',
  default: false,
});

/** What makes a template besides what all of them have alike. */
export type Written = Pick<Template, 'id' | 'name' | 'description' | 'category' | 'hog' | 'inputs_schema'> &
  Partial<Pick<Template, 'mapping_templates' | 'protects'>>;

export const template = (type: Template['type'], icon: string, given: Written): Template => ({
  ...{ type, status: 'stable', icon_url: `/static/services/${icon}.svg` },
  ...{ filters: null, masking: null, mapping_templates: null },
  ...given,
});

export const destination = (icon: string, given: Written): Template => template('destination', icon, given);
export const transformation = (given: Written): Template =>
  template('transformation', 'transformation', given);
export const site = (type: 'site_app' | 'site_destination', given: Written, icon = 'site'): Template =>
  template(type, icon, given);

/** The default of inputs that are messages. It does without a person, because an event may have none. */
export const MESSAGE = '{event.event} by {person.name ?? event.distinct_id}';

/** A function of programs that reads a list of names from a text with commas. */
export const NAMES_OF = `fun namesOf(text) {
  let names := []
  for (let one in splitByString(',', text ?? '')) {
    let name := trim(one)
    if (name != '') { names := arrayPushBack(names, name) }
  }
  return names
}
`;
