// Few events of many: the newest hundred events of a day or a month by name, distinct id, person and property, and SQL by hand.
import { createHash } from 'node:crypto';
import type { Pool } from '../../db/pool.ts';
import { type Ask, quantile, shown, textOf, within } from './ask.ts';
import { DAY, NOW, OPEN, peopleOf } from './dataset.ts';

interface Case {
  name: string;
  hogql: string;
  sql: string;
}

/** Queries for the newest hundred events of a range of times. */
function casesOf({ events, project }: Measured, from: number, to: number): Case[] {
  const when = `timestamp > '${textOf(from)}' and timestamp < '${textOf(to)}'`;
  const stored = `inserted_at >= '${textOf(from - DAY)}' and inserted_at < '${textOf(to + 7 * DAY)}'`;
  const order = 'order by timestamp desc, uuid desc limit 100';
  const who = Math.floor(Math.random() * peopleOf(events));
  const id = uuidOf(who);
  const one = (name: string, condition: string, byHand = condition): Case => ({
    name,
    hogql: `select uuid, event, distinct_id, timestamp from events where ${when}${condition && ` and ${condition}`} ${order}`,
    sql: `select uuid, event, distinct_id, timestamp from events where project_id = ${project} and ${when} and ${stored}
      ${byHand && `and ${byHand}`} ${order}`,
  });
  return [
    one('newest', ''),
    one('by a rare name', "event = 'rare'"),
    one('by a distinct id', `distinct_id = 'user-${who}'`),
    one('by a person', `person_id = '${id}'`, `(person_id = '${id}' or distinct_id = 'user-${who}')`),
    one('by a property', "properties.plan = 'paid'", "properties ->> 'plan' = 'paid'"),
  ];
}

/** The id of the person with this number. */
export const uuidOf = (who: number): string => {
  const hash = createHash('md5').update(String(who)).digest('hex');
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20)].join(
    '-',
  );
};

export interface Measured {
  pool: Pool;
  ask: Ask;
  /** How many events there are, and which project has four fifths of them. */
  events: number;
  project: number;
  rounds: number;
}

/** Prints a table: each query in each range of times, with other times and another person in each round. */
export async function measureFew(measured: Measured): Promise<void> {
  const { pool, ask, rounds } = measured;
  const places: [string, () => [number, number]][] = [
    ['a day of the open week', () => [Math.max(OPEN, NOW - DAY), NOW]],
    ['a day of a sealed week', () => within(DAY)],
    ['a month of sealed weeks', () => within(30 * DAY)],
  ];
  console.log(
    '| times | events | rows | API p50 ms | p99 ms | compile p50 ms | Postgres p50 ms | p99 ms | SQL by hand p50 ms | p99 ms | Postgres p50 × by hand |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [place, times] of places) {
    for (const [number] of casesOf(measured, ...times()).entries()) {
      const taken = {
        api: [] as number[],
        compile: [] as number[],
        run: [] as number[],
        hand: [] as number[],
      };
      let found = 0;
      let name = '';
      for (let round = -3; round < rounds; round += 1) {
        const one = casesOf(measured, ...times())[number] as Case;
        name = one.name;
        const start = performance.now();
        const { rows, compile, run } = await ask(one.hogql);
        const middle = performance.now();
        const { rowCount } = await pool.query(one.sql);
        const end = performance.now();
        if (rows !== rowCount) throw new Error(`${one.hogql}: ${rows} rows, and ${rowCount} by hand`);
        if (round < 0) continue;
        found += rows;
        taken.api.push(middle - start);
        taken.compile.push(compile);
        taken.run.push(run);
        taken.hand.push(end - middle);
      }
      const { api, compile, run, hand } = taken;
      const ratio = quantile(run, 0.5) / quantile(hand, 0.5);
      const cells = [
        ...[place, name, (found / rounds).toFixed(1)],
        ...[shown(quantile(api, 0.5)), shown(quantile(api, 0.99)), shown(quantile(compile, 0.5))],
        ...[shown(quantile(run, 0.5)), shown(quantile(run, 0.99))],
        ...[shown(quantile(hand, 0.5)), shown(quantile(hand, 0.99)), ratio.toFixed(2)],
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
}
