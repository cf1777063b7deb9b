import { type ShownAction, shownActions } from '../../actions/reads/steps-of.ts';
import type { Queryable } from '../../db/pool.ts';
import type { OfferedSurvey } from '../../surveys/rows/surveys.ts';
import { isObject } from '../../values/json-object.ts';

type Fields = Record<string, unknown>;

/** What conditions say of actions. */
function namedActions(conditions: unknown): Fields[] {
  const actions = isObject(conditions) ? conditions.actions : undefined;
  return isObject(actions) && Array.isArray(actions.values) ? actions.values.filter(isObject) : [];
}

/** The ids of the actions that conditions name. */
export const actionIds = (conditions: unknown): number[] =>
  namedActions(conditions).map(({ id }) => Number(id));

/** An action as a client looks for it. Clients tell actions apart by their names. */
const shown = (value: Fields, { id, name, steps }: ShownAction): Fields => ({
  ...value,
  ...{ id, name: name ?? `Action ${id}`, steps },
});

/**
 * Adds to each survey that waits for actions what they are, for clients that look for their events by themselves. An action that
 * is not there has no steps: nothing makes it happen. As many surveys are left as fit into so many bytes of actions.
 */
export async function withActions(
  queryable: Queryable,
  projectId: number,
  surveys: OfferedSurvey[],
  bytes: number,
): Promise<OfferedSurvey[]> {
  const ids = surveys.flatMap(({ conditions }) => actionIds(conditions));
  if (ids.length === 0) return surveys;
  const actions = await shownActions(queryable, projectId, [...new Set(ids)]);
  const filled: OfferedSurvey[] = [];
  let left = bytes;
  for (const survey of surveys) {
    const named = namedActions(survey.conditions);
    if (named.length === 0) {
      filled.push(survey);
      continue;
    }
    const values = named.map((value) => {
      const action = actions.get(Number(value.id));
      return action ? shown(value, action) : value;
    });
    left -= Buffer.byteLength(JSON.stringify(values));
    if (left < 0) continue;
    const conditions = survey.conditions as Fields;
    const all = { ...(conditions.actions as Fields), values };
    filled.push({ ...survey, conditions: { ...conditions, actions: all } });
  }
  return filled;
}
