import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ConfigError, describeSettings, loadConfig } from '../config.ts';

const END = 'All settings are listed in the README under "Configuration".';
const refusal = (...problems: string[]) =>
  new ConfigError(`The configuration is not valid:\n  ${problems.join('\n  ')}\n${END}`);

describe('settings', () => {
  test('have defaults that need nothing', () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      PORT: 8000,
      SLUICE_PUBLIC_URL: 'http://localhost:8000',
      SLUICE_DATA_DIR: path.resolve('.sluice'),
      SLUICE_EXPORT_ROOT: path.resolve('.sluice/exports'),
      SLUICE_RATE_LIMIT: false,
      SLUICE_MIGRATE: true,
      SLUICE_METRICS_PORT: 0,
      TEMPORAL_NAMESPACE: 'default',
    });
    expect(config.DATABASE_URL).toBeUndefined();
    expect(config.SLUICE_GEOIP_DATABASE).toBeUndefined();
  });

  test('that are empty count as unset; others than ours are no business of ours', () => {
    expect(loadConfig({ PORT: '', DATABASE_URL: '', PATH: '/bin', HOME: '' }).PORT).toBe(8000);
  });

  test.each([
    [{ SLUICE_RATELIMIT: '1' }, 'SLUICE_RATELIMIT: no such setting; did you mean SLUICE_RATE_LIMIT?'],
    [{ SLUICE_NOTHING: '1' }, 'SLUICE_NOTHING: no such setting'],
    [{ sluice_nothing: '1', SLUICE_: 'x' }, 'SLUICE_: no such setting; did you mean SLUICE_HOST?'],
    [{ PORT: '99999' }, 'PORT: Too big: expected number to be <=65535'],
    [{ PORT: 'http' }, 'PORT: Invalid input: expected number, received NaN'],
    [{ PORT: '80.5' }, 'PORT: Invalid input: expected int, received number'],
    [{ SLUICE_DATABASE_POOL: '0' }, 'SLUICE_DATABASE_POOL: Too small: expected number to be >=1'],
    [{ SLUICE_MIGRATE: 'yes' }, 'SLUICE_MIGRATE: Invalid option: expected one of "0"|"1"|"true"|"false"'],
    [{ DATABASE_URL: 'mysql://x' }, 'DATABASE_URL: Invalid URL'],
    [{ TEMPORAL_ADDRESS: 'localhost' }, 'TEMPORAL_ADDRESS: must be host:port'],
    [{ SLUICE_PUBLIC_URL: 'ftp://x' }, 'SLUICE_PUBLIC_URL: Invalid URL'],
  ])('refuse %j', (env, problem) => {
    expect(() => loadConfig(env)).toThrow(refusal(problem));
  });

  test('name all problems at once, and no value of a secret', () => {
    const env = { SLUICE_X: '1', PORT: 'x', DATABASE_URL: 'http://user:hunter2@db' };
    expect(() => loadConfig(env)).toThrow(
      refusal(
        'SLUICE_X: no such setting',
        'PORT: Invalid input: expected number, received NaN',
        'DATABASE_URL: Invalid URL',
      ),
    );
    expect(String(catchError(() => loadConfig(env)))).not.toContain('hunter2');
  });

  test('are all described', () => {
    for (const setting of describeSettings()) {
      expect([setting.name, setting.description.endsWith('.') || setting.description.endsWith(')')]).toEqual([
        setting.name,
        true,
      ]);
    }
  });
});

function catchError(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}
