import { describe, expect, test } from '@jest/globals';
import { trialsForFile } from './trial.ts';

const trials = trialsForFile();
const said = (tried: { errors: string[] }) => tried.errors.join('\n');
const TITLE = 'a "b" {event.event}';

describe('linear', () => {
  const inputs = { api_key: 'lin_api_secret', team: 'team-1', title: TITLE, description: 'Line\n2' };
  const created = {
    data: { issueCreate: { success: true, issue: { identifier: 'A-1', url: 'https://x' } } },
  };

  test('creates an issue with variables', async () => {
    const tried = await trials.run('template-linear', { inputs, answers: [{ body: created }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: 'https://api.linear.app/graphql' },
        headers: { authorization: 'lin_api_secret', 'content-type': 'application/json' },
        body: {
          query:
            'mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier url } } }',
          variables: { input: { teamId: 'team-1', title: 'a "b" order paid', description: 'Line\n2' } },
        },
      },
    ]);
    expect(JSON.stringify(tried)).not.toContain('lin_api_secret');
  });

  test('a token of OAuth has a scheme', async () => {
    const others = { ...inputs, api_key: 'oauth-token', assignee: 'user-1' };
    await trials.run('template-linear', { inputs: others, answers: [{ body: created }] });
    expect(trials.heard).toMatchObject([
      {
        headers: { authorization: 'Bearer oauth-token' },
        body: { variables: { input: { assigneeId: 'user-1' } } },
      },
    ]);
  });

  test.each([
    [
      { status: 200, body: { errors: [{ message: 'Entity not found: Team' }] } },
      "200: {'errors': [{'message': 'Entity not found: Team'}]}",
    ],
    [
      { status: 400, body: { errors: [{ message: 'Bad input' }] } },
      "400: {'errors': [{'message': 'Bad input'}]}",
    ],
    [{ status: 200, body: { data: { issueCreate: { success: false } } } }, '200: {'],
  ])('fails when it is refused: %j', async (answer, words) => {
    const tried = await trials.run('template-linear', { inputs, answers: [answer] });
    expect(said(tried)).toContain(`Failed to post create issue in Linear: ${words}`);
  });
});

describe('github', () => {
  const inputs = {
    token: 'ghp_secret',
    repository: 'shop/web.site',
    title: TITLE,
    labels: 'bug, from events,',
  };

  test('creates an issue', async () => {
    const tried = await trials.run('template-github', { inputs, answers: [{ status: 201 }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: 'https://api.github.com/repos/shop/web.site/issues' },
        headers: {
          authorization: 'Bearer ghp_secret',
          accept: 'application/vnd.github+json',
          'x-github-api-version': '2022-11-28',
          'user-agent': 'Sluice',
        },
        body: {
          title: 'a "b" order paid',
          body: expect.stringContaining('Event: order paid\nPerson: ada@shop.test\n\nhttps://sluice.test/'),
          labels: ['bug', 'from events'],
        },
      },
    ]);
    expect(JSON.stringify(tried)).not.toContain('ghp_secret');
  });

  test.each([
    [{ status: 401, body: { message: 'Bad credentials' } }, "401: {'message': 'Bad credentials'}"],
    [
      { status: 410, body: { message: 'Issues are disabled for this repo' } },
      "410: {'message': 'Issues are disabled",
    ],
    [
      { status: 422, body: { message: 'Validation Failed', errors: [] } },
      "422: {'message': 'Validation Failed'",
    ],
  ])('fails when it is refused: %j', async (answer, words) => {
    const tried = await trials.run('template-github', { inputs, answers: [answer] });
    expect(said(tried)).toContain(`Failed to create GitHub issue: ${words}`);
  });

  test('refuses what is no repository, and skips without a title', async () => {
    const path = await trials.run('template-github', { inputs: { ...inputs, repository: 'a/b/c' } });
    expect(said(path)).toContain('The repository must be an owner and a name');
    expect(trials.heard).toEqual([]);
    const event = { properties: {} };
    const empty = await trials.run('template-github', {
      inputs: { ...inputs, title: '{event.properties.missing}' },
      event,
    });
    expect([empty.status, trials.heard]).toEqual(['success', []]);
    expect(empty.logs[0]?.message).toBe('The title is empty. Skipped.');
  });
});

describe('gitlab', () => {
  const inputs = { token: 'glpat-secret', project: 'shop/web', title: TITLE, labels: 'a, b' };

  test('creates an issue', async () => {
    const tried = await trials.run('template-gitlab', { inputs, answers: [{ status: 201 }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: 'https://gitlab.com/api/v4/projects/shop%2Fweb/issues' },
        headers: { 'private-token': 'glpat-secret', 'content-type': 'application/json' },
        body: { title: 'a "b" order paid', labels: 'a,b' },
      },
    ]);
    expect(JSON.stringify(tried)).not.toContain('glpat-secret');
  });

  test.each([
    [
      { status: 404, body: { message: '404 Project Not Found' } },
      "404: {'message': '404 Project Not Found'}",
    ],
    [{ status: 403, body: { error: 'insufficient_scope' } }, "403: {'error': 'insufficient_scope'}"],
  ])('fails when it is refused: %j', async (answer, words) => {
    const host = 'https://git.shop.test/';
    const tried = await trials.run('template-gitlab', { inputs: { ...inputs, host }, answers: [answer] });
    expect(said(tried)).toContain(`Failed to create GitLab issue: ${words}`);
    expect(trials.heard[0]?.url).toBe('https://git.shop.test/api/v4/projects/shop%2Fweb/issues');
  });
});
