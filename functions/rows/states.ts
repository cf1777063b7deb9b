import type { Queryable } from '../../db/pool.ts';
import type { StateChange } from '../rules/state-line.ts';

/** The numbers by which functions are degraded and disabled; see functions/rules/watcher.ts. */
export interface WatcherRule {
  state: { healthy: number; degraded: number; disabled: number; disabledForGood: number };
  bucket: number;
  refill: number;
  healthyFrom: number;
  onProbation: number;
  disabledSeconds: number;
  mostDisabled: number;
}

interface Key {
  projectId: number;
  functionId: string;
}

/** What runs of a function have cost. */
export interface Cost extends Key {
  cost: number;
}

/** The tokens of a row `s` as they are now. */
const tokensNow = ({ bucket, refill }: WatcherRule) =>
  `least(${bucket}, s.tokens + ${refill} * extract(epoch from clock_timestamp() - s.refilled_at))`;
/** The state of a row `s` as it is now. A function that was disabled for a while is on probation afterwards. */
const stateNow = ({ state }: WatcherRule) =>
  `case when s.state = ${state.disabled} and s.disabled_until <= clock_timestamp() then ${state.degraded} else s.state end`;

/** What is known of the runs of a function, as JSON, for a query of functions `f`. Null: they have cost nothing. */
export const WATCHED = `(select json_build_object('state', s.state, 'tokens', s.tokens,
    'seconds', extract(epoch from clock_timestamp() - s.refilled_at),
    'disabled_for', extract(epoch from s.disabled_until - clock_timestamp()))
  from function_states s where s.project_id = f.project_id and s.function_id = f.id)`;

/** Takes tokens from functions, in the order of their keys. Returns those whose state changes by that. */
export async function charge(
  queryable: Queryable,
  costs: readonly Cost[],
  rule: WatcherRule,
): Promise<StateChange[]> {
  const { state, bucket } = rule;
  if (costs.length === 0) return [];
  const values = [
    costs.map((one) => one.projectId),
    costs.map((one) => one.functionId),
    costs.map((one) => one.cost),
  ];
  await queryable.query(
    `insert into function_states as s (project_id, function_id, tokens)
     select project_id, function_id, ${bucket} - cost from unnest($1::int[], $2::uuid[], $3::bigint[])
       as c (project_id, function_id, cost) order by project_id, function_id
     on conflict (project_id, function_id) do update set
       tokens = greatest(-${bucket}, ${tokensNow(rule)} - (${bucket} - excluded.tokens)), refilled_at = clock_timestamp()`,
    values,
  );
  const { rows } = await queryable.query(
    `update function_states s set state = n.next, changed_at = clock_timestamp(),
       disabled_until = case when n.next = ${state.disabled} then clock_timestamp() + interval '${rule.disabledSeconds} seconds' end,
       disabled_at = case when n.next >= ${state.disabled} then n.recent || clock_timestamp() else n.recent end,
       tokens = case when n.next >= ${state.disabled} then 0 else s.tokens end
     from (select s.project_id, s.function_id, ${stateNow(rule)} as current, r.recent,
         case when ${stateNow(rule)} >= ${state.disabled} then ${stateNow(rule)}
           when s.tokens <= 0 and cardinality(r.recent) >= ${rule.mostDisabled - 1} then ${state.disabledForGood}
           when s.tokens <= 0 then ${state.disabled}
           when s.tokens < ${rule.healthyFrom} then ${state.degraded} else ${state.healthy} end as next
       from function_states s
       cross join lateral (select array(select at from unnest(s.disabled_at) as at
         where at > clock_timestamp() - interval '1 day') as recent) r
       where (s.project_id, s.function_id) in (select * from unnest($1::int[], $2::uuid[]))) n
     where s.project_id = n.project_id and s.function_id = n.function_id and (n.current <> n.next or s.state <> n.next)
     returning s.project_id, s.function_id, s.state`,
    values.slice(0, 2),
  );
  return rows.map((row) => ({
    ...{ projectId: row.project_id, functionId: row.function_id, state: row.state },
  }));
}

/** A function that is not run, and when it is again. Null: when somebody saves it. */
export interface DisabledFunction {
  project_id: number;
  function_id: string;
  state: number;
  seconds: number | null;
}

/** Lists the functions of projects that are not run at the moment. */
export async function disabledFunctions(
  queryable: Queryable,
  projectIds: readonly number[],
  { state }: WatcherRule,
): Promise<Map<string, DisabledFunction>> {
  const { rows } = await queryable.query({
    name: 'disabled-functions',
    text: `select project_id, function_id, state, case when state = ${state.disabled}
       then extract(epoch from disabled_until - clock_timestamp())::float8 end as seconds
     from function_states where project_id = any($1) and state > 1
       and (state = ${state.disabledForGood} or state = ${state.disabled} and disabled_until > clock_timestamp())`,
    values: [projectIds],
  });
  return new Map(rows.map((row) => [row.function_id, row]));
}

/** Lists the functions that come after the others. */
export async function degradedFunctions(queryable: Queryable, { state }: WatcherRule): Promise<Set<string>> {
  const { rows } = await queryable.query({
    name: 'degraded-functions',
    text: `select function_id from function_states where state in (${state.degraded}, ${state.disabled})`,
  });
  return new Set(rows.map((row) => row.function_id));
}

/** Puts a disabled function on probation, because somebody has saved it. */
export async function revive(
  queryable: Queryable,
  { projectId, functionId }: Key,
  { state, onProbation }: WatcherRule,
): Promise<void> {
  await queryable.query(
    `update function_states set state = ${state.degraded}, tokens = ${onProbation}, refilled_at = clock_timestamp(),
       changed_at = clock_timestamp(), disabled_until = null
     where project_id = $1 and function_id = $2 and state >= ${state.disabled}`,
    [projectId, functionId],
  );
}
