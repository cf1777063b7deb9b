import { afterAll, describe, expect, test } from '@jest/globals';
import type { RawConfig } from '../../destinations/config.ts';
import { targetsCollide } from '../../destinations/write-target.ts';
import { exportQuery } from '../../exports/reads/query.ts';
import { keepSettings, openSettings, sealSettings } from '../../exports/reads/settings.ts';
import { folderOf, storedTargetOf } from '../../exports/reads/stored-target.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { createCompiler } from '../../models/index.ts';
import { generateKey, type Keyring, parseKeyring, SecretError } from '../../secrets/envelope.ts';
import { END, START } from '../models/support.ts';
import { PATIENCE } from '../support/eventually.ts';

const keyring = parseKeyring(generateKey('one'));
const ID = '01900000-0000-7000-8000-000000000001';
const S3 = {
  bucket_name: 'lake',
  region: 'eu-west-1',
  prefix: 'ph/{table}',
  aws_access_key_id: 'AKIA-very-secret',
  aws_secret_access_key: 'wJalrXUtnFEMI-very-secret',
};

describe('what is stored of a destination', () => {
  test('shows no secret, and opens to what it was', () => {
    const stored = sealSettings(keyring, ID, { type: 'AwsS3', config: S3 });
    expect(stored.destination_type).toBe('AwsS3');
    expect(stored.config).toEqual({ bucket_name: 'lake', region: 'eu-west-1', prefix: 'ph/{table}' });
    expect(JSON.stringify(stored)).not.toContain('very-secret');
    expect(openSettings(keyring, { id: ID, ...stored })).toEqual({ type: 'AwsS3', config: S3 });
  });

  test('opens for its own export only, and with its own keys', () => {
    const stored = sealSettings(keyring, ID, { type: 'S3', config: S3 });
    expect(() => openSettings(keyring, { id: ID.replace('1900', '1901'), ...stored })).toThrow(SecretError);
    expect(() => openSettings(parseKeyring(generateKey('two')), { id: ID, ...stored })).toThrow(
      /key "one".*add it back/,
    );
    expect(() => openSettings(undefined, { id: ID, ...stored })).toThrow(/SLUICE_ENCRYPTION_KEYS is not set/);
  });

  test('is stored once more under the first key, so that a rotation does not miss it', () => {
    const stored = sealSettings(keyring, ID, { type: 'S3', config: S3 });
    const next = generateKey('next');
    const both: Keyring = { primary: 'next', keys: new Map([...parseKeyring(next).keys, ...keyring.keys]) };
    const kept = keepSettings(both, stored);
    expect(kept.secrets).toMatch(/^slc1\.next\./);
    expect(openSettings(parseKeyring(next), { id: ID, ...kept })).toEqual({ type: 'S3', config: S3 });
    // Without its key, it stays as it is.
    expect(keepSettings(parseKeyring(next), stored)).toEqual(stored);
    expect(keepSettings(undefined, stored)).toEqual(stored);
  });

  test('needs no keys where there are no secrets', () => {
    const settings = { type: 'File', config: { directory: 'events' } };
    const stored = sealSettings(undefined, ID, settings);
    expect(stored.secrets).toBeNull();
    expect(openSettings(undefined, { id: ID, ...stored })).toEqual(settings);
    expect(() => sealSettings(undefined, ID, { type: 'S3', config: S3 })).toThrow(SecretError);
  });
});

describe('what is read', () => {
  const compiler = createCompiler({ threads: 1, timeoutMs: PATIENCE });
  afterAll(() => compiler.close());
  const row = (given: Partial<BatchExportRow> = {}) =>
    ({
      project_id: 7,
      model: 'events',
      destination_type: 'S3',
      config: {},
      timezone: 'UTC',
      filters: null,
      hogql_query: null,
      ...given,
    }) as BatchExportRow;
  const columnsOf = async (given: Partial<BatchExportRow>) =>
    (await exportQuery(compiler, row(given), { start: START, end: END })).columns.map((one) => one.name);

  test('columns by the kind of destination', async () => {
    expect(await columnsOf({})).toContain('_inserted_at');
    expect(await columnsOf({ destination_type: 'File' })).toContain('_inserted_at');
    expect(await columnsOf({ destination_type: 'Postgres' })).toContain('set_once');
    expect(await columnsOf({ destination_type: 'HTTP' })).not.toContain('_inserted_at');
  });

  test('names of events, filters and chosen columns', async () => {
    const query = await exportQuery(
      compiler,
      row({
        config: { include_events: ['bought'], exclude_events: ['$pageleave'] },
        filters: [{ type: 'event', key: '$browser', operator: 'exact', value: ['Firefox'] }],
        hogql_query: 'select uuid, properties.plan as plan from events',
      }),
      { start: null, end: END },
    );
    expect(query.columns.map((one) => one.name)).toEqual(['uuid', 'plan']);
    for (const part of ['bought', '$pageleave', '$browser', 'Firefox']) expect(query.text).toContain(part);
    expect(query.text).toMatch(/\b7\b/);
  });

  test('faults name their field', async () => {
    await expect(columnsOf({ filters: [{ type: 'group' }] })).rejects.toMatchObject({ field: 'filters' });
    await expect(columnsOf({ model: 'persons', hogql_query: 'select 1' })).rejects.toMatchObject({
      field: 'hogql_query',
    });
    await expect(columnsOf({ model: 'sessions', destination_type: 'HTTP' })).rejects.toMatchObject({
      field: 'model',
    });
  });
});

test('intervals of days and weeks begin where the row says', () => {
  expect(
    cadenceOfRow({ interval: 'week', timezone: 'Europe/Berlin', interval_offset: 86_400 + 7_200 }),
  ).toEqual({ interval: 'week', timezone: 'Europe/Berlin', offsetDay: 1, offsetHour: 2 });
});

describe('where it writes', () => {
  const of = (
    type: string,
    config: Record<string, unknown>,
    model: 'events' | 'persons' = 'events',
    folder: string | null = '@projects/1',
  ) => storedTargetOf({ type, config }, { model, interval: 'hour', folder });
  const collide = (one: ReturnType<typeof of>, other: ReturnType<typeof of>) =>
    one !== null && other !== null && one.store === other.store && targetsCollide(one.target, other.target);

  test('the same bucket under any name of the type and the server', () => {
    expect(collide(of('S3', S3), of('AwsS3', { ...S3, prefix: '/ph/{table}/' }))).toBe(true);
    expect(
      collide(of('S3', S3), of('S3', { ...S3, endpoint_url: 'https://s3.eu-west-1.amazonaws.com' })),
    ).toBe(true);
    expect(
      collide(
        of('S3', { ...S3, endpoint_url: 'http://minio:9000' }),
        of('S3Compatible', { ...S3, endpoint_url: 'http://MINIO:9000/' }),
      ),
    ).toBe(true);
    expect(collide(of('S3', S3), of('S3', { ...S3, bucket_name: 'sea' }))).toBe(false);
    expect(collide(of('S3', S3), of('S3', S3, 'persons'))).toBe(false);
    expect(collide(of('S3', S3), of('S3', { ...S3, endpoint_url: 'http://minio:9000' }))).toBe(false);
  });

  test('the same directory, however it is written', () => {
    expect(collide(of('File', { directory: './a' }), of('File', { directory: 'a/.', prefix: '/' }))).toBe(
      true,
    );
    expect(collide(of('File', { directory: 'a/b' }), of('File', { directory: 'a', prefix: 'b' }))).toBe(true);
    expect(collide(of('File', { directory: '{year}' }), of('File', { directory: '.', prefix: '2026' }))).toBe(
      false,
    );
  });

  test('folders of projects are apart from each other and from the root', () => {
    const config = { directory: 'a' };
    const all = ['@projects/1', '@projects/2', null].map((folder) => of('File', config, 'events', folder));
    for (const one of all) for (const other of all) expect(collide(one, other)).toBe(one === other);
  });

  test('an export keeps its folder; one from before folders gets one when its files go elsewhere', () => {
    const at = (current: { folder: string | null; config: RawConfig } | undefined, config: RawConfig) =>
      folderOf(7, current, { type: 'File', config });
    const old = { folder: null, config: { directory: 'a' } };
    expect(at(undefined, { directory: 'a' })).toBe('@projects/7');
    expect(at(old, { directory: 'a', prefix: '', file_format: 'CSV' })).toBeNull();
    expect(at(old, { directory: 'b' })).toBe('@projects/7');
    expect(at(old, { directory: 'a', prefix: 'b/' })).toBe('@projects/7');
    expect(at({ ...old, folder: '@projects/6' }, { directory: 'b' })).toBe('@projects/6');
  });

  test('rows have keys: no two exports are in each other’s way', () => {
    expect(of('Postgres', { host: 'db', database: 'lake' })).toBeNull();
    expect(of('HTTP', { url: 'https://a.example' })).toBeNull();
    expect(of('NoOp', {})).toBeNull();
  });
});
