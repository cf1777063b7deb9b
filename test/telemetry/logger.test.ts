import { Writable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { createLogger, redactText } from '../../telemetry/logger.ts';
import { newPersonalApiKey, newProjectSecret, newProjectToken } from '../../tenancy/tokens.ts';

const CANARY = 'canary-9f8e7d6c5b4a';
const KEY = newPersonalApiKey();

function logged(write: (logger: ReturnType<typeof createLogger>) => void, level = 'trace'): string {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  write(createLogger({ name: 'test', level }, stream));
  return lines.join('');
}

describe('the log', () => {
  test('is one JSON object a line, with level, time and process', () => {
    const line = JSON.parse(logged((logger) => logger.info({ a: 1 }, 'message')));
    expect(line).toMatchObject({ level: 'info', a: 1, msg: 'message', process: 'test' });
    expect(line.time).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(logged((logger) => logger.debug('quiet'), 'info')).toBe('');
  });

  test.each([
    'authorization',
    'personal_api_key',
    'api_key',
    'token',
    'secret',
    'password',
    'cookie',
    'secret_api_key',
    'aws_secret_access_key',
    'value',
    'apiKey',
    'TEMPORAL_API_KEY',
    'SLUICE_ENCRYPTION_KEYS',
  ])('never has the value of %s, at three levels', (name) => {
    const text = logged((logger) => {
      logger.info({ [name]: CANARY });
      logger.info({ a: { [name]: CANARY } });
      logger.info({ request: { headers: { [name]: CANARY } } });
    });
    expect(text).not.toContain(CANARY);
    expect(text.match(/\[redacted\]/g)).toHaveLength(3);
  });

  test('never has a key, wherever it turns up', () => {
    const secrets = [KEY, newProjectSecret(), newPersonalApiKey().replace('phx', 'pha')];
    for (const secret of secrets) {
      const text = logged((logger) => {
        logger.info(`failed with ${secret}`);
        logger.info({ url: `/api/?personal_api_key=${secret}&x=1` });
        logger.error({ err: new Error(`bad key "${secret}"`) });
        logger.error({ err: Object.assign(new Error('x'), { detail: { deep: { deeper: [secret] } } }) });
        logger.info({ [`name_${secret}`]: 1, a: { b: { c: { d: `key_${secret}` } } } });
        logger.warn({ list: [[`(${secret})`]] }, 'format %s', secret);
      });
      expect(text).not.toContain(secret);
      expect(text).not.toContain(secret.slice(4));
    }
    const token = newProjectToken();
    expect(logged((logger) => logger.info(token))).toContain(token);
  });

  test.each([
    ['postgres://user:pass@host/db', 'postgres://user:[redacted]@host/db'],
    ['postgres://user:p@ss@host/db', 'postgres://user:[redacted]@host/db'],
    ['redis://:pass@host', 'redis://:[redacted]@host'],
    [
      'at https://a:b@x.test/y?z, then postgresql://u:w@h',
      'at https://a:[redacted]@x.test/y?z, then postgresql://u:[redacted]@h',
    ],
    ['https://x.test/a:b@c', 'https://x.test/a:b@c'],
    ['http://localhost:8000/x', 'http://localhost:8000/x'],
    ['mail a@b.c', 'mail a@b.c'],
  ])('shows no password of an address: %s', (text, expected) => {
    expect(redactText(text)).toBe(expected);
  });

  test('stays JSON when something is taken out', () => {
    const text = logged((logger) => logger.info({ url: 'postgres://u:p"w@h/d', key: KEY, next: 'x' }));
    expect(() => JSON.parse(text)).not.toThrow();
  });
});
