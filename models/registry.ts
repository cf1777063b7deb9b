import { events } from './events/events.ts';
import { groups } from './groups/groups.ts';
import type { ColumnSet, Model } from './model.ts';
import { persons } from './persons/persons.ts';
import { sessions } from './sessions/sessions.ts';

/** Every model. The first one is exported if neither a model nor a query is given. */
export const MODELS = [events, persons, sessions, groups] as const satisfies readonly Model[];

export type ModelName = (typeof MODELS)[number]['name'];

export const MODEL_NAMES: readonly ModelName[] = MODELS.map(({ name }) => name);
export const DEFAULT_MODEL: ModelName = MODELS[0].name;

const BY_NAME: ReadonlyMap<string, Model> = new Map(MODELS.map((model) => [model.name, model]));

export function modelOf(name: ModelName): Model {
  const model = BY_NAME.get(name);
  if (!model) throw new Error(`There is no model '${name}'`);
  return model;
}

/** The names of the models for which something holds. */
export const namesOfModels = (holds: (model: Model) => boolean): ModelName[] =>
  MODELS.filter(holds).map(({ name }) => name);

/** The names of the models that a kind of destinations takes. */
export const modelsFor = (columnSet: ColumnSet): ModelName[] =>
  namesOfModels(({ columns }) => columns[columnSet] !== undefined);

/** Joins names as in `events, persons or sessions`. */
export const listed = (names: readonly string[], last: 'and' | 'or'): string =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1)}`;
