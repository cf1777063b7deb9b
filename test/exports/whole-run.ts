import { beforeAll } from '@jest/globals';
import { createTenant, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import type { ApiProgram, programsForFile } from '../support/programs.ts';
import type { ExportWorld } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
type Body = any;

/** Batch exports as their operator has them: through the API alone, which is a process of its own. */
export interface Operator {
  api: ApiProgram;
  tenant: Tenant;
  /** Answers the body; throws what is not a success. */
  ask(method: string, path: string, body?: object): Promise<Body>;
  /** Makes an export, and answers its path. */
  create(type: string, config: object, fields?: object): Promise<string>;
  /** Runs the interval that begins then, and answers its run when it is over. */
  run(path: string, start: string): Promise<Body>;
  /** Runs it again as a retry of this run, and answers the run of the retry. */
  retry(path: string, run: { id: string }): Promise<Body>;
  /** Verifies an interval or a run, and asks again until there is a report. */
  verify(path: string, of: object): Promise<Body>;
  /** The newest run, when it is over. */
  lastRun(path: string, workflowId?: string): Promise<Body>;
}

/** `programs` has to be older than the world: its processes end before the database does. */
export function operatorForFile(programs: ReturnType<typeof programsForFile>, world: ExportWorld): Operator {
  const operator = {
    async ask(method, path, body) {
      const url = path.startsWith('/')
        ? path
        : `/api/projects/${operator.tenant.projectId}/batch_exports/${path}`;
      const answer = await fetch(operator.api.url + url, {
        method,
        headers: { authorization: `Bearer ${operator.tenant.key}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status}: ${text}`);
      return text === '' ? undefined : JSON.parse(text);
    },
    async create(type, config, fields = {}) {
      const destination = { type, config };
      const { id } = await operator.ask('POST', '', {
        ...{ name: 'Lake', interval: 'hour', destination },
        ...fields,
      });
      return `${id}/`;
    },
    async run(path, start) {
      const { workflow_id: id } = await operator.ask('POST', `${path}run/`, { start_at: start });
      return operator.lastRun(path, id);
    },
    async retry(path, run) {
      const { backfill_id: id } = await operator.ask('POST', `${path}runs/${run.id}/retry/`);
      await eventually(async () => {
        const { status } = await operator.ask('GET', `${path}backfills/${encodeURIComponent(id)}/`);
        return !['Starting', 'Running'].includes(status);
      });
      return operator.lastRun(path);
    },
    verify: (path, of) =>
      eventually(async () => {
        const report = await operator.ask('POST', `${path}verify/`, of);
        return report.verdict ? report : undefined;
      }),
    lastRun: (path, workflowId) =>
      eventually(async () => {
        const { results } = await operator.ask('GET', `${path}runs/`);
        const run = results.find((one: Body) => workflowId === undefined || one.workflow_id === workflowId);
        return run?.finished_at ? run : undefined;
      }),
  } as Operator;
  beforeAll(async () => {
    operator.tenant = await createTenant(world.pool, 'Operator');
    operator.api = await programs.ready(await programs.startApi(world.variables));
  });
  return operator;
}
