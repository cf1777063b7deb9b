import { describe, expect, test } from '@jest/globals';
import type { ColumnType } from '../../formats/columns.ts';
import { COLUMN_SETS, MODEL_NAMES, type ModelOptions, modelOf } from '../../models/index.ts';
import { databaseForFile } from '../support/database.ts';
import { parserForFile, queryOf } from './support.ts';

const database = databaseForFile();
const parser = parserForFile();

/** Numbers of Postgres's types whose binary form is what a column of the type promises. */
const TYPES: Record<ColumnType, number[]> = {
  string: [25],
  json: [25, 114],
  uuid: [2950],
  int32: [23],
  int64: [20],
  float64: [701],
  bool: [16],
  timestamp: [1184],
  strings: [1009],
};

const names = async (options: Partial<ModelOptions>) =>
  (await queryOf(parser, options)).columns.map((one) => `${one.name}${one.nullable ? '?' : ''}:${one.type}`);

describe('columns', () => {
  test('of events', async () => {
    expect(await names({ columnSet: 'files' })).toEqual([
      ...['uuid:uuid', 'event:string', 'distinct_id:string', 'timestamp:timestamp', 'created_at:timestamp'],
      ...['_inserted_at:timestamp', 'properties:json', 'person_id:uuid', 'person_properties:json'],
      'elements_chain:string',
    ]);
    expect(await names({ columnSet: 'tables' })).toEqual([
      ...['uuid:uuid', 'event:string', 'properties:json', 'elements:json', 'set?:json', 'set_once?:json'],
      ...['distinct_id:string', 'team_id:int32', 'ip?:string', 'site_url?:string', 'timestamp:timestamp'],
      'person_properties:json',
    ]);
    expect(await names({ columnSet: 'capture' })).toEqual([
      ...['uuid:uuid', 'event:string', 'distinct_id:string', 'timestamp:timestamp', 'properties:json'],
      'elements_chain:string',
    ]);
  });

  test('of persons', async () => {
    const all = [
      ...['team_id:int32', 'distinct_id:string', 'person_id:uuid', 'properties:json'],
      ...[
        'person_distinct_id_version:int64',
        'person_version:int64',
        'created_at:timestamp',
        'is_deleted:bool',
      ],
    ];
    expect(await names({ model: 'persons' })).toEqual([...all, '_inserted_at:timestamp']);
    expect(await names({ model: 'persons', columnSet: 'tables' })).toEqual(all);
  });

  test('of groups', async () => {
    const all = [
      ...['team_id:int32', 'group_type_index:int32', 'group_type?:string', 'group_key:string'],
      ...['group_properties:json', 'created_at:timestamp', 'updated_at:timestamp', 'version:int64'],
      'is_deleted:bool',
    ];
    expect(await names({ model: 'groups' })).toEqual([...all, '_inserted_at:timestamp']);
    expect(await names({ model: 'groups', columnSet: 'tables' })).toEqual(all);
  });

  test('of sessions', async () => {
    expect(await names({ model: 'sessions' })).toEqual([
      ...['session_id:string', 'session_id_v7?:uuid', 'team_id:int32', 'distinct_id:string'],
      ...['start_timestamp:timestamp', 'end_timestamp:timestamp', 'urls:strings', 'num_uniq_urls:int32'],
      ...['entry_current_url?:string', 'entry_pathname?:string', 'entry_hostname?:string'],
      ...['end_current_url?:string', 'end_pathname?:string', 'end_hostname?:string'],
      ...['exit_current_url?:string', 'exit_pathname?:string', 'entry_utm_source?:string'],
      ...['entry_utm_campaign?:string', 'entry_utm_medium?:string', 'entry_utm_term?:string'],
      ...['entry_utm_content?:string', 'entry_referring_domain?:string', 'entry_gclid?:string'],
      ...['entry_fbclid?:string', 'entry_gad_source?:string', 'entry_gclsrc?:string', 'entry_dclid?:string'],
      ...['entry_gbraid?:string', 'entry_wbraid?:string', 'entry_msclkid?:string', 'entry_twclid?:string'],
      ...['entry_li_fat_id?:string', 'entry_mc_cid?:string', 'entry_igshid?:string', 'entry_ttclid?:string'],
      ...['entry_irclid?:string', 'entry__kx?:string', 'pageview_count:int32', 'autocapture_count:int32'],
      ...['screen_count:int32', 'channel_type:string', 'session_duration:int32', 'duration:int32'],
      ...['is_bounce?:bool', 'last_external_click_url?:string', 'page_screen_autocapture_count_up_to:int32'],
      ...['vitals_lcp?:float64', '_inserted_at:timestamp'],
    ]);
  });

  const SELECTED = `select uuid, event, properties, person_properties as pp, set, ip, timestamp, team_id, person_id,
    properties.$browser as browser, person.properties.email as email, concat(event, '-', distinct_id) as both,
    1 as one, 1.5 as half, event = 'a' as test, null as nothing, [1, 2] as numbers, ['a', event] as texts,
    [now_at, timestamp] as times, timestamp as now_at, (1, 'a') as pair, toDate(timestamp) as day,
    toJSONString(elements_chain) as chain, JSONExtractInt(properties, 'n') as n, toFloat('1') as f, $session_id,
    length(event) as l, if(event = 'a', uuid, null) as maybe, properties.deep.down as down,
    JSONExtractRaw(properties, 'x') as raw from events`;

  type Case = [string, Partial<ModelOptions>];
  test.each<Case>([
    ...MODEL_NAMES.flatMap((model) => [
      ...COLUMN_SETS.filter((set) => modelOf(model).columns[set]).map(
        (columnSet): Case => [`${model} for ${columnSet}`, { model, columnSet }],
      ),
      [`a star of ${model}`, { model: null, hogqlQuery: `select * from ${model}` }] satisfies Case,
    ]),
    ['selected columns of all types', { hogqlQuery: SELECTED }],
    [
      'all of persons',
      { model: null, hogqlQuery: 'select *, id, is_identified, properties.a as a from persons' },
    ],
    [
      'all of sessions',
      { model: null, hogqlQuery: 'select *, $urls as u, $end_timestamp as e from sessions' },
    ],
  ])('%s: Postgres sends what the columns say', async (_name, options) => {
    const query = await queryOf(parser, options);
    const { fields } = await database.pool.query(`select * from (${query.select}) as x limit 0`);
    expect(fields).toHaveLength(query.columns.length);
    for (const [index, column] of query.columns.entries()) {
      expect([column.name, TYPES[column.type]]).toEqual([
        column.name,
        expect.arrayContaining([fields[index]?.dataTypeID]),
      ]);
    }
  });
});
