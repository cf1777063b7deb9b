import { changeTransaction } from '../../db/change-turns.ts';
import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit, changes } from '../../tenancy/audit.ts';
import {
  deleteSurvey,
  findSurvey,
  insertSurvey,
  lockSurvey,
  type SurveyFields,
  type SurveyKey,
  type SurveyRow,
  sizeOfSurveys,
  updateSurvey,
} from '../rows/surveys.ts';
import { lostBranch } from '../rules/questions.ts';
import { unshowable } from '../rules/shown.ts';
import {
  ANY_VARIANT,
  internalFilters,
  internalKey,
  isRunning,
  iterationAt,
  iterationStarts,
  SURVEY_LIMITS,
  targetingKey,
} from '../rules/surveys.ts';

type Filters = Record<string, unknown>;

/** What surveys need of feature flags. All of it happens in the transaction of the survey. */
export interface SurveyFlags {
  /** The keys of the variants of a flag. Undefined: there is no such flag. */
  variants(client: Transaction, projectId: number, flagId: number): Promise<string[] | undefined>;
  create(
    client: Transaction,
    actor: Actor,
    projectId: number,
    flag: { key: string; name: string; filters: Filters; active: boolean },
  ): Promise<number>;
  change(
    client: Transaction,
    actor: Actor,
    key: { projectId: number; flagId: number },
    change: { filters?: Filters; active?: boolean; deleted?: true },
  ): Promise<void>;
}

export interface SurveyCommandDependencies {
  pool: Pool;
  flags: SurveyFlags;
}

/** What follows from the rest. */
type Derived =
  | 'targeting_flag_id'
  | 'internal_targeting_flag_id'
  | 'current_iteration'
  | 'current_iteration_start_date';

/** What a user sets. Fields that are left out keep their values, or get their defaults. */
export type SurveyInput = {
  [Field in keyof Omit<SurveyFields, Derived>]?: SurveyFields[Field] | undefined;
} & {
  /** Who sees the survey: the filters of a flag. Null takes them away. */
  targeting?: Filters | null | undefined;
};

const logged = (row: SurveyRow) => ({
  ...{ name: row.name, description: row.description, type: row.type, schedule: row.schedule },
  ...{ questions: row.questions, conditions: row.conditions, appearance: row.appearance },
  ...{ linked_flag_id: row.linked_flag_id, start_date: row.start_date, end_date: row.end_date },
  ...{ archived: row.archived, responses_limit: row.responses_limit },
  ...{ iteration_count: row.iteration_count, iteration_frequency_days: row.iteration_frequency_days },
  targeting_flag_filters: row.targeting_flag?.filters ?? null,
});

const auditSurvey = (
  client: Transaction,
  actor: Actor,
  row: SurveyRow,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
) =>
  audit(client, actor, {
    ...{ scope: 'Survey', itemId: row.id, projectId: row.project_id, activity },
    detail: { name: row.name, ...detail },
  });

/** Refuses what clients could not show. */
function check(fields: SurveyFields): void {
  const { questions, conditions, appearance, start_date: start, end_date: end } = fields;
  const bytes = Buffer.byteLength(JSON.stringify([questions, conditions, appearance]));
  if (bytes > SURVEY_LIMITS.bytes) {
    const message = `The questions, conditions and appearance have ${bytes} bytes; at most ${SURVEY_LIMITS.bytes} are allowed.`;
    throw refuse.invalid('questions', message, { code: 'max_length' });
  }
  const lost = lostBranch(questions);
  if (lost) {
    const to = JSON.stringify(lost.to) ?? 'nothing';
    const message = `Question ${lost.question} leads to ${to}, and there are ${questions.length} questions, counted from 0.`;
    throw refuse.invalid('questions', message);
  }
  if (end !== null && start === null)
    throw refuse.invalid('end_date', 'A survey that has not begun cannot end.');
  if (start !== null && end !== null && Date.parse(end) < Date.parse(start)) {
    throw refuse.invalid('end_date', 'The end must not be before the beginning, `start_date`.');
  }
  if (isRunning(fields) && questions.length === 0) {
    throw refuse.invalid('questions', 'A survey needs at least one question before it begins.');
  }
}

/** Refuses questions and an appearance that pages could not show, or that would be programs in them. */
function checkShown(input: SurveyInput, { questions, appearance }: SurveyFields): void {
  if (input.questions === undefined && input.appearance === undefined) return;
  const found = unshowable(questions, appearance);
  if (found) throw refuse.invalid(found.field, found.message);
}

/** About how much a survey takes. */
const documentBytes = ({ description, questions, conditions, appearance }: SurveyFields): number =>
  Buffer.byteLength(JSON.stringify([description, questions, conditions, appearance]));

/**
 * Refuses what would be more than a project may have. One survey is replaced. Surveys of a project are changed one after the other
 * in a process; several processes may go beyond it by one each.
 */
async function checkRoom(
  client: Transaction,
  projectId: number,
  replaced: string | null,
  fields: SurveyFields,
): Promise<void> {
  const { surveys: most, bytesOfProject } = SURVEY_LIMITS;
  const others = await sizeOfSurveys(client, projectId, replaced);
  if (replaced === null && others.surveys + 1 > most) {
    throw refuse.invalid(null, `A project may have ${most} surveys.`, { code: 'limit' });
  }
  const bytes = others.bytes + documentBytes(fields);
  if (bytes > bytesOfProject) {
    const message = `The surveys of the project would have ${bytes} bytes; ${bytesOfProject} are allowed. Delete some that are over.`;
    throw refuse.invalid('questions', message, { code: 'limit' });
  }
}

/** Says which iteration of a survey runs. Those that are over stay over. */
function iterationOf(fields: SurveyFields, before: number | null, now: number) {
  const at = iterationAt(fields, now);
  const { iteration_count: count } = fields;
  if (before !== null && count !== null && count > 0 && count < before) {
    const message = `Cannot change survey recurrence to ${count}, should be at least ${before}`;
    throw refuse.invalid('iteration_count', message);
  }
  const number = at === 'over' ? count : at;
  const start = number === null ? null : (iterationStarts(fields)?.[number - 1] ?? null);
  return { current_iteration: number, current_iteration_start_date: start };
}

/** Gives each question an id, by which answers name it. */
const identified = (questions: SurveyFields['questions']): SurveyFields['questions'] =>
  questions.map((one) => (one.id ? one : { ...one, id: uuidv7() }));

/** Refuses a linked flag that is not there, and a variant that it does not have: nobody would ever see the survey. */
async function checkLinked(
  { flags }: SurveyCommandDependencies,
  client: Transaction,
  projectId: number,
  input: SurveyInput,
  { linked_flag_id: flagId, conditions }: SurveyFields,
): Promise<void> {
  const variant = conditions?.linkedFlagVariant;
  const isNamed = typeof variant === 'string' && variant !== '';
  if (flagId === null) {
    if (!isNamed || !input.conditions) return;
    const message = 'linkedFlagVariant can only be used when a linked_flag_id is specified';
    throw refuse.invalid('conditions', message);
  }
  if (!input.linked_flag_id && !input.conditions) return;
  const variants = await flags.variants(client, projectId, flagId);
  if (!variants) {
    if (!input.linked_flag_id) return;
    throw refuse.invalid('linked_flag_id', 'Feature Flag with this ID does not exist');
  }
  if (!isNamed || variant === ANY_VARIANT || variants.includes(variant)) return;
  throw refuse.invalid(
    'conditions',
    variants.length === 0
      ? `Feature flag variant '${variant}' specified but the linked feature flag has no variants`
      : `Feature flag variant '${variant}' does not exist. Available variants: ${variants.join(', ')}`,
  );
}

/** Makes the flag that decides who sees a survey what it must be. Answers its id. */
async function setTargeting(
  { flags }: SurveyCommandDependencies,
  client: Transaction,
  actor: Actor,
  survey: { projectId: number; id: string; name: string; flagId: number | null; active: boolean },
  targeting: Filters | null | undefined,
): Promise<number | null> {
  const { projectId, id, name, flagId, active } = survey;
  if (flagId === null) {
    if (!targeting) return null;
    const flag = { key: targetingKey(id), name: `Targeting flag for survey ${name}` };
    return flags.create(client, actor, projectId, { ...flag, filters: targeting, active });
  }
  const key = { projectId, flagId };
  if (targeting === null) {
    await flags.change(client, actor, key, { deleted: true });
    return null;
  }
  await flags.change(client, actor, key, { ...(targeting && { filters: targeting }), active });
  return flagId;
}

/** Makes a survey, with the flags that decide who sees it. */
export function createSurvey(
  deps: SurveyCommandDependencies,
  actor: Actor,
  projectId: number,
  { targeting, ...input }: SurveyInput & Pick<SurveyFields, 'name' | 'type'>,
): Promise<SurveyRow> {
  const id = uuidv7();
  const draft: SurveyFields = {
    ...{ name: input.name, type: input.type, description: input.description ?? '' },
    ...{ schedule: input.schedule ?? 'once', questions: identified(input.questions ?? []) },
    ...{ conditions: input.conditions ?? null, appearance: input.appearance ?? null },
    ...{ linked_flag_id: input.linked_flag_id ?? null, archived: input.archived ?? false },
    ...{ targeting_flag_id: null, internal_targeting_flag_id: null },
    ...{ start_date: input.start_date ?? null, end_date: input.end_date ?? null },
    responses_limit: input.responses_limit ?? null,
    enable_partial_responses: input.enable_partial_responses ?? false,
    iteration_count: input.iteration_count ?? null,
    iteration_frequency_days: input.iteration_frequency_days ?? null,
    ...{ current_iteration: null, current_iteration_start_date: null },
  };
  check(draft);
  checkShown(input, draft);
  Object.assign(draft, iterationOf(draft, null, Date.now()));
  return changeTransaction(deps.pool, projectId, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    await checkRoom(client, projectId, null, draft);
    await checkLinked(deps, client, projectId, input, draft);
    const active = isRunning(draft);
    const about = { projectId, id, name: draft.name, flagId: null, active };
    const targetingFlag = await setTargeting(deps, client, actor, about, targeting);
    const internalFlag = await deps.flags.create(client, actor, projectId, {
      ...{ key: internalKey(id), name: `Internal targeting flag for survey ${draft.name}`, active },
      filters: internalFilters(id, draft.schedule, draft.current_iteration),
    });
    const row = await insertSurvey(client, {
      ...{ ...draft, project_id: projectId, id },
      ...{ targeting_flag_id: targetingFlag, internal_targeting_flag_id: internalFlag },
      created_by: actor.kind === 'user' ? actor.userId : null,
    });
    await auditSurvey(client, actor, row, 'created', {});
    return row;
  });
}

/** Leaves out the keys without a value. */
const given = <T extends object>(input: T) =>
  Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined),
  ) as Partial<SurveyFields>;

/** Refuses to let a survey go on whose last iteration is over: maintenance would end it again within minutes. */
function checkResumed(before: SurveyRow, fields: SurveyFields, now: number): void {
  if (before.end_date === null || !isRunning(fields) || iterationAt(fields, now) !== 'over') return;
  const message =
    'The last iteration of the survey is over. Let it go on with a higher `iteration_count`, or with 0, without iterations.';
  throw refuse.invalid('end_date', message);
}

/**
 * Changes a survey. Its flags follow: they are on while it runs. What changes may depend on what the survey is. Undefined: nothing
 * changes.
 */
export function changeSurvey(
  deps: SurveyCommandDependencies,
  actor: Actor,
  key: SurveyKey,
  decide: (before: SurveyRow) => SurveyInput | undefined,
): Promise<SurveyRow> {
  const { projectId, surveyId: id } = key;
  return changeTransaction(deps.pool, projectId, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent();
    await lockSurvey(client, key);
    const before = await findSurvey(client, key);
    if (!before) throw refuse.absent();
    const decided = decide(before);
    if (!decided) return before;
    const { targeting, ...input } = decided;
    const fields: SurveyFields = { ...before, ...given(input) };
    fields.questions = identified(fields.questions);
    check(fields);
    checkShown(input, fields);
    checkResumed(before, fields, Date.now());
    if (documentBytes(fields) > documentBytes(before)) await checkRoom(client, projectId, id, fields);
    Object.assign(fields, iterationOf(fields, before.current_iteration, Date.now()));
    await checkLinked(deps, client, projectId, input, fields);
    const active = isRunning(fields);
    // Flags that somebody has deleted meanwhile count as if there were none.
    const about = { projectId, id, name: fields.name, active };
    const flagId = before.targeting_flag?.id ?? null;
    fields.targeting_flag_id = await setTargeting(deps, client, actor, { ...about, flagId }, targeting);
    const internal = before.internal_targeting_flag?.id;
    if (internal !== undefined) {
      const change = { active, filters: internalFilters(id, fields.schedule, fields.current_iteration) };
      await deps.flags.change(client, actor, { projectId, flagId: internal }, change);
    }
    const after = await updateSurvey(client, key, fields);
    await auditSurvey(client, actor, after, 'updated', changes(logged(before), logged(after)));
    return after;
  });
}

/**
 * Lets the next iteration of a survey begin, or ends the survey after the last one. Answers whether there was something to
 * do.
 */
export function advanceSurvey(
  deps: { pool: Pool; flags: Pick<SurveyFlags, 'change'> },
  actor: Actor,
  key: SurveyKey,
  now: number,
): Promise<boolean> {
  const { projectId, surveyId: id } = key;
  return transaction(deps.pool, async (client) => {
    if (!(await lockProject(client, projectId))) return false;
    await lockSurvey(client, key);
    const before = await findSurvey(client, key);
    if (!before || !isRunning(before)) return false;
    const at = iterationAt(before, now);
    if (at === null || at === before.current_iteration) return false;
    const fields: SurveyFields = {
      ...before,
      ...iterationOf(before, null, now),
      ...(at === 'over' ? { end_date: new Date(now).toISOString() } : {}),
    };
    const active = isRunning(fields);
    const flags = [
      [before.targeting_flag?.id, { active }],
      [
        before.internal_targeting_flag?.id,
        { active, filters: internalFilters(id, fields.schedule, fields.current_iteration) },
      ],
    ] as const;
    for (const [flagId, change] of flags) {
      if (flagId !== undefined) await deps.flags.change(client, actor, { projectId, flagId }, change);
    }
    const after = await updateSurvey(client, key, fields);
    const reason = at === 'over' ? 'Its last iteration is over.' : `Its iteration ${at} begins.`;
    await auditSurvey(client, actor, after, 'updated', { reason });
    return true;
  });
}

/** Deletes a survey with the flags that it made. The answers stay: they are events. */
export function removeSurvey(deps: SurveyCommandDependencies, actor: Actor, key: SurveyKey): Promise<void> {
  return changeTransaction(deps.pool, key.projectId, async (client) => {
    if (!(await lockProject(client, key.projectId))) throw refuse.absent();
    await lockSurvey(client, key);
    const row = await findSurvey(client, key);
    if (!row) throw refuse.absent();
    for (const flag of [row.targeting_flag, row.internal_targeting_flag]) {
      if (!flag) continue;
      const flagKey = { projectId: key.projectId, flagId: flag.id };
      await deps.flags.change(client, actor, flagKey, { deleted: true });
    }
    await deleteSurvey(client, key);
    await auditSurvey(client, actor, row, 'deleted', {});
  });
}
