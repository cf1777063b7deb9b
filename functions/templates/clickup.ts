import { bearerToken, choice, destination, failIfRefused, skipWithout, text } from './inputs.ts';

export const CLICKUP = destination('clickup', {
  id: 'template-clickup',
  name: 'ClickUp',
  description: 'Creates a task in a list of ClickUp for each event.',
  category: ['Error tracking'],
  hog: `${skipWithout('inputs.taskName', 'task name')}let assignees := []
let given := typeof(inputs.assigneeId) in ['array', 'tuple'] ? inputs.assigneeId : splitByString(',', toString(inputs.assigneeId ?? ''))
for (let one in given) {
  if (trim(toString(one)) != '') { assignees := arrayPushBack(assignees, toInt(trim(toString(one)))) }
}
let task := {'name': toString(inputs.taskName), 'description': inputs.description ?? '', 'assignees': assignees}
if (notEmpty(inputs.statusId)) { task.status := inputs.statusId }
if (notEmpty(inputs.priorityId)) { task.priority := toInt(inputs.priorityId) }
let answer := fetch(f'https://api.clickup.com/api/v2/list/{encodeURLComponent(toString(inputs.listId))}/task', {
  'method': 'POST',
  'headers': {
    // Personal tokens stand alone. Tokens of OAuth have a scheme.
    'Authorization': inputs.tokenType = 'oauth' ? inputs.oauth.authorization : inputs.oauth.access_token,
    'Content-Type': 'application/json'
  },
  'body': task
})
${failIfRefused('api.clickup.com')}`,
  inputs_schema: [
    bearerToken('oauth', 'ClickUp account', 'api.clickup.com'),
    choice(
      'tokenType',
      'Kind of token',
      { personal: 'Personal token (pk_…)', oauth: 'Token of OAuth' },
      { description: 'ClickUp takes them in different ways.' },
    ),
    text('listId', 'List ID', { description: 'The list that gets the tasks.', required: true }),
    text('taskName', 'Name', {
      description: 'The name of the task. Without a name there is no task.',
      default: '{event.event}',
      required: true,
    }),
    text('statusId', 'Status', { description: 'A status of the list, such as to do. Empty: the first one.' }),
    text('priorityId', 'Priority', { description: '1 (urgent) to 4 (low).', default: '3' }),
    text('assigneeId', 'Assignees', { description: 'The numbers of members, with commas between them.' }),
    text('description', 'Description', { default: '{event.url}' }),
  ],
});
