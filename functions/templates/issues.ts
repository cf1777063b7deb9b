import { destination, input } from './parts.ts';

const DESCRIPTION = 'Event: {event.event}\nPerson: {person.name ?? event.distinct_id}\n\n{event.url}';
const NO_TITLE = `if (empty(inputs.title)) {
  print('The title is empty. Skipped.')
  return
}
`;
const title = input({
  key: 'title',
  label: 'Title',
  description: 'The title of the issue. Without a title there is no issue.',
  default: '{event.event}',
  required: true,
});
const labels = input({
  key: 'labels',
  label: 'Labels',
  description: 'The names of labels, with commas between them.',
});

export const LINEAR = destination('linear', {
  id: 'template-linear',
  name: 'Linear',
  description: 'Creates an issue in Linear for each event.',
  category: ['Error tracking'],
  hog: `${NO_TITLE}let issue := { 'teamId': inputs.team, 'title': toString(inputs.title), 'description': inputs.description ?? '' }
if (notEmpty(inputs.assignee)) { issue.assigneeId := inputs.assignee }
let answer := fetch('https://api.linear.app/graphql', {
  'method': 'POST',
  'headers': {
    // Personal keys stand alone. Tokens of OAuth have a scheme.
    'Authorization': startsWith(inputs.api_key, 'lin_api_') ? inputs.api_key : f'Bearer {inputs.api_key}',
    'Content-Type': 'application/json'
  },
  'body': {
    'query': 'mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier url } } }',
    'variables': { 'input': issue }
  }
})
// GraphQL says 200 to most mistakes.
if (answer.status != 200 or notEmpty(answer.body.errors) or answer.body.data.issueCreate.success != true) {
  throw Error(f'Failed to post create issue in Linear: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'api_key',
      label: 'API key',
      description: 'A personal API key (lin_api_…) or an OAuth access token.',
      required: true,
      secret: true,
      templating: false,
    }),
    input({
      key: 'team',
      label: 'Team ID',
      description: 'The UUID of the team. In Linear, the command “Copy model UUID” shows it.',
      required: true,
    }),
    title,
    input({
      key: 'description',
      label: 'Description',
      description: 'The text of the issue, in Markdown.',
      default: DESCRIPTION,
    }),
    input({ key: 'assignee', label: 'Assignee ID', description: 'The UUID of a user.' }),
  ],
});

const NAMES = `let labels := arrayFilter(one -> one != '', arrayMap(one -> trim(one), splitByString(',', inputs.labels ?? '')))
`;
const HOST = `let host := match(inputs.host, '/$') ? substring(inputs.host, 1, length(inputs.host) - 1) : inputs.host
`;

export const GITHUB = destination('github', {
  id: 'template-github',
  name: 'GitHub',
  description: 'Creates an issue in a GitHub repository for each event.',
  category: ['Error tracking'],
  hog: `${NO_TITLE}if (not match(inputs.repository, '^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$')) {
  throw Error('The repository must be an owner and a name: owner/name')
}
${NAMES}${HOST}let issue := { 'title': toString(inputs.title), 'body': inputs.description ?? '' }
if (notEmpty(labels)) { issue.labels := labels }
let answer := fetch(f'{host}/repos/{inputs.repository}/issues', {
  'method': 'POST',
  'headers': {
    'Authorization': f'Bearer {inputs.token}',
    'Accept': 'application/vnd.github+json',
    'X-GitHub-Api-Version': '2022-11-28',
    // GitHub refuses requests without it.
    'User-Agent': 'Sluice',
    'Content-Type': 'application/json'
  },
  'body': issue
})
if (answer.status != 201) {
  throw Error(f'Failed to create GitHub issue: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'token',
      label: 'Access token',
      description: 'A token that may write issues of the repository.',
      required: true,
      secret: true,
      templating: false,
    }),
    input({ key: 'repository', label: 'Repository', description: 'As owner/name.', required: true }),
    title,
    input({
      key: 'description',
      label: 'Description',
      description: 'The text of the issue, in Markdown.',
      default: DESCRIPTION,
    }),
    labels,
    input({
      key: 'host',
      label: 'API address',
      description: 'Of GitHub Enterprise Server: https://HOST/api/v3.',
      default: 'https://api.github.com',
      required: true,
    }),
  ],
});

export const GITLAB = destination('gitlab', {
  id: 'template-gitlab',
  name: 'GitLab',
  description: 'Creates an issue in a GitLab project for each event.',
  category: ['Error tracking'],
  hog: `${NO_TITLE}${NAMES}${HOST}let issue := { 'title': toString(inputs.title), 'description': inputs.description ?? '' }
if (notEmpty(labels)) { issue.labels := arrayStringConcat(labels, ',') }
let answer := fetch(f'{host}/api/v4/projects/{encodeURLComponent(toString(inputs.project))}/issues', {
  'method': 'POST',
  'headers': { 'PRIVATE-TOKEN': inputs.token, 'Content-Type': 'application/json' },
  'body': issue
})
if (answer.status != 201) {
  throw Error(f'Failed to create GitLab issue: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'token',
      label: 'Access token',
      description: 'A token with the scope api.',
      required: true,
      secret: true,
      templating: false,
    }),
    input({
      key: 'project',
      label: 'Project',
      description: 'The ID of the project, or its path: group/name.',
      required: true,
    }),
    title,
    input({
      key: 'description',
      label: 'Description',
      description: 'The text of the issue, in Markdown.',
      default: DESCRIPTION,
    }),
    labels,
    input({
      key: 'host',
      label: 'Address of GitLab',
      description: 'Without a path.',
      default: 'https://gitlab.com',
      required: true,
    }),
  ],
});
