import { destination, failIfRefused, secret, text } from './inputs.ts';
import { DEBUG, input } from './parts.ts';

export const AIRTABLE = destination('airtable', {
  id: 'template-airtable',
  name: 'Airtable',
  description: 'Creates a record in a table of Airtable for each event.',
  category: ['Custom'],
  hog: `let url := f'https://api.airtable.com/v0/{encodeURLComponent(inputs.base_id)}/{encodeURLComponent(inputs.table_name)}'
let answer := fetch(url, {
  'method': 'POST',
  'headers': {'Authorization': f'Bearer {inputs.access_token}', 'Content-Type': 'application/json'},
  'body': {'fields': inputs.fields, 'typecast': true}
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
${failIfRefused('api.airtable.com')}`,
  inputs_schema: [
    secret('access_token', 'Access token', {
      description: 'A personal access token with the scope data.records:write.',
    }),
    text('base_id', 'Base ID', { description: 'Begins with app.', required: true }),
    text('table_name', 'Table', { description: 'The name or ID of the table.', required: true }),
    input({
      key: 'fields',
      type: 'json',
      label: 'Fields',
      description:
        'The names of fields and their values. Airtable converts texts to the types of the fields.',
      default: { Timestamp: '{event.timestamp}', 'Person Name': '{person.name}' },
      required: true,
    }),
    DEBUG,
  ],
});
