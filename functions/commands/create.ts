import { type Transaction, transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import {
  countEnabled,
  type FunctionKey,
  findFunction,
  hasFunctions,
  insertFunction,
  lastOrder,
  type ShownFunctionRow,
} from '../rows/functions.ts';
import { lockOrders } from '../rows/locks.ts';
import type { Content } from '../rules/definition.ts';
import { LAST_ORDER, MOST_TRANSFORMATIONS } from '../rules/limits.ts';
import { defaultOnError } from '../rules/on-error.ts';
import { checkPolicy, storedPolicy } from '../rules/policy.ts';
import { type FunctionTypeName, typeOf } from '../rules/types.ts';
import { holdCohorts } from '../surroundings.ts';
import type { Template } from '../templates/template.ts';
import { auditFunction } from './audit.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import { requireMappingRoom } from './mapping-room.ts';
import { checkOnError, contentOf, type FunctionInput, mergeContent, prepareContent } from './prepare.ts';
import { requireSiteRoom } from './site-room.ts';

/** Creates a function. A template fills what the input leaves out. */
export async function createFunction(
  deps: FunctionCommandDependencies,
  actor: Actor,
  projectId: number,
  input: FunctionInput,
  signal?: AbortSignal,
): Promise<ShownFunctionRow> {
  const { pool, mostFunctions } = deps;
  const key = { projectId, functionId: uuidv7() };
  const { enabled = false } = input;
  const { type, template, content } = newContent(deps, input);
  checkOnError(type, input);
  checkPolicy(type, input);
  const prepared = await prepareContent(deps, key, type, content, enabled, signal);
  return transaction(pool, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    if (await hasFunctions(client, projectId, mostFunctions)) {
      throw refuse.invalid(
        null,
        `This project already has ${mostFunctions} functions, the most that it may have. Delete one before creating ` +
          'another.',
      );
    }
    if (enabled) {
      await requireSiteRoom(client, key, prepared.transpiled);
      await requireMappingRoom(client, key, prepared.mappings);
    }
    await holdCohorts(client, deps, projectId, prepared.compiled_from);
    const order = input.execution_order ?? null;
    await insertFunction(client, {
      ...prepared,
      project_id: projectId,
      id: key.functionId,
      ...{ type, enabled, template_id: template?.id ?? null },
      name: input.name ?? template?.name ?? null,
      description: input.description || template?.description || '',
      icon_url: input.icon_url || template?.icon_url || null,
      ...{ delivery: storedPolicy(input.delivery ?? null), paused: input.paused ?? false },
      execution_order: await placeOf(client, key, type, { order, moves: true, enables: enabled }),
      on_error: input.on_error ?? defaultOnError(type, template?.protects),
      created_by: actor.kind === 'user' ? actor.userId : null,
    });
    const row = (await findFunction(client, key)) as ShownFunctionRow;
    await auditFunction(client, actor, key, 'created', { name: row.name, type });
    return row;
  });
}

/** What a new function is made of: what its user says, and what a template says where the user says nothing. */
export function newContent(
  deps: Pick<FunctionCommandDependencies, 'template'>,
  input: FunctionInput,
): { type: FunctionTypeName; template: Template | undefined; content: Content } {
  const { template_id: templateId } = input;
  const template = templateId ? deps.template(templateId) : undefined;
  if (templateId && (!template || template.status === 'hidden')) {
    throw refuse.invalid('template_id', `No template found for id '${templateId}'`);
  }
  const type = input.type ?? template?.type ?? 'destination';
  if (template && template.type !== type && !isForOwnEvents(template.type, type)) {
    throw refuse.invalid(
      'template_id',
      `The template '${template.id}' is for functions of type ${template.type}, not ${type}.`,
    );
  }
  const sent = Object.fromEntries(Object.entries(input).filter(([, value]) => !isEmpty(value)));
  return { type, template, content: mergeContent(undefined, { ...input, ...contentOf(template), ...sent }) };
}

/** What sends captured events somewhere also sends events of Sluice itself. */
const isForOwnEvents = (template: FunctionTypeName, type: FunctionTypeName): boolean =>
  template === 'destination' && type === 'internal_destination';

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

interface Move {
  /** The place that the user asks for. Null: none. */
  order: number | null;
  /** Whether the function goes to the end if nobody asks for a place. */
  moves: boolean;
  /** Whether it becomes enabled. */
  enables: boolean;
}

/**
 * Finds the place of a function in the order of its type. Only one change at a time can do this in a project, so no two
 * functions get the same place by themselves.
 */
export async function placeOf(
  client: Transaction,
  key: FunctionKey,
  type: FunctionTypeName,
  { order, moves, enables }: Move,
): Promise<number | null> {
  if (!typeOf(type).isOrdered) return order;
  await lockOrders(client, key.projectId);
  if (enables && (await countEnabled(client, key, type)) >= MOST_TRANSFORMATIONS) {
    throw refuse.invalid(
      'type',
      `Maximum of ${MOST_TRANSFORMATIONS} enabled transformation functions allowed per team. Please disable one first.`,
    );
  }
  if (order !== null || !moves) return order;
  return Math.min((await lastOrder(client, key, type)) + 1, LAST_ORDER);
}
