import type { Bytecode } from '../../hog/bytecode/index.ts';
import { FilterError } from '../../properties/index.ts';
import { refuse } from '../../refusals.ts';
import { ActionCompilerBusyError } from '../compiler.ts';
import type { ActionFields, StepDocument } from '../rows/actions.ts';
import { ACTION_LIMITS } from '../rules/limits.ts';
import { tidyTags } from '../rules/tags.ts';
import type { ActionCommandDependencies } from './dependencies.ts';

/** What a user sets about an action. Fields that are left out keep their values, or in a new action get their defaults. */
export interface ActionInput {
  name?: string | null | undefined;
  description?: string | undefined;
  tags?: string[] | undefined;
  post_to_slack?: boolean | undefined;
  slack_message_format?: string | undefined;
  steps?: StepDocument[] | undefined;
  pinned_at?: string | null | undefined;
  deleted?: boolean | undefined;
}

/** The project of an action. Relative dates are read in its time zone. */
export interface ActionProject {
  id: number;
  timezone: string;
}

const RETRY_SECONDS = 5;

/**
 * Computes what an input sets, and compiles its steps. That may take long, so call it before the transaction that stores
 * the result.
 */
export async function prepareAction(
  deps: Pick<ActionCommandDependencies, 'actionCompiler' | 'compiling'>,
  project: ActionProject,
  { steps, tags, ...rest }: ActionInput,
  signal?: AbortSignal,
): Promise<Partial<ActionFields>> {
  if (steps === undefined) return { ...given(rest), ...given({ tags: tags && tidyTags(tags) }) };
  const { bytes } = ACTION_LIMITS;
  const size = Buffer.byteLength(JSON.stringify(steps));
  if (size > bytes) {
    throw refuse.invalid('steps', `The steps of an action may have ${bytes} bytes, and these have ${size}.`, {
      code: 'max_length',
    });
  }
  const bytecode = await compiled(deps, project, steps, signal);
  return { ...given(rest), ...given({ tags: tags && tidyTags(tags) }), steps, bytecode };
}

/** Leaves out the keys without a value. */
const given = <T extends object>(input: T) =>
  Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined),
  ) as Partial<ActionFields>;

async function compiled(
  { actionCompiler, compiling }: Pick<ActionCommandDependencies, 'actionCompiler' | 'compiling'>,
  { id: projectId, timezone }: ActionProject,
  steps: StepDocument[],
  signal: AbortSignal | undefined,
): Promise<Bytecode> {
  const moment = { now: Date.now(), timezone };
  try {
    return await compiling.take({ projectId, signal }, () =>
      actionCompiler.compile(projectId, { steps, moment }, signal),
    );
  } catch (error) {
    if (error instanceof ActionCompilerBusyError) throw refuse.unavailable(error.message, RETRY_SECONDS);
    if (!(error instanceof FilterError)) throw error;
    throw refuse.invalid(
      error.path === '' ? 'steps' : error.path.replaceAll('.', '__'),
      sentence(error.message),
    );
  }
}

/** Ends a message with a full stop, as the API writes its errors. */
const sentence = (message: string) => (/[.!?]$/.test(message) ? message : `${message}.`);
