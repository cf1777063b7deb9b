import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { addressOf } from '../../destinations/address.ts';
import { bindDestination } from '../../destinations/bind.ts';
import { listText, type RawConfig } from '../../destinations/config.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import { DestinationError } from '../../destinations/errors.ts';
import { requireDestination } from '../../destinations/registry.ts';
import { patchSettings, runTestStep, testSteps } from '../../destinations/settings.ts';
import { createEgress, type Egress } from '../../egress/egress.ts';
import { secretKeys } from '../../values/marked-secrets.ts';
import { reservePort } from '../support/ports.ts';
import { type DeliverOptions, deliver, failureOf, HASTE, RUN, textOf } from './harness.ts';
import { sampleEvents, sampleUuid } from './sample.ts';
import { CANARY, findSubjects } from './subject.ts';

// One suite for every destination, each against the real thing.

let egress: Egress;
let exportRoot = '';
const subjects = await findSubjects({ exportRoot: () => exportRoot });

beforeAll(async () => {
  egress = createEgress({ allow: '127.0.0.1' });
  exportRoot = mkdtempSync(path.join(tmpdir(), 'sluice-test-exports-'));
});
afterAll(async () => {
  await egress.close();
  rmSync(exportRoot, { recursive: true, force: true });
});

describe.each(subjects)('$name', (subject) => {
  let config: RawConfig;
  let surroundings: Surroundings;
  const events = sampleEvents(300);
  const uuids = events.map((event) => event.uuid);

  beforeEach(async () => {
    config = await subject.config();
    surroundings = { egress, exportRoot, patience: HASTE };
  });

  const send = (options: Partial<DeliverOptions> = {}) =>
    deliver({ type: subject.name, config, surroundings, events, perFile: 100, ...options });
  const visible = async () => (await subject.visible(config)).sort();

  test('delivers each event once', async () => {
    const result = await send();
    expect(await visible()).toEqual(uuids);
    expect(result.rows).toBe(300);
  });

  test('delivered twice, there is one copy', async () => {
    await send();
    await send({ run: { ...RUN, runId: 'run-2' } });
    expect(await visible()).toEqual(uuids);
  });

  test('half delivered by an attempt that failed, the next one completes it', async () => {
    await failureOf(send({ breakAfter: { bytes: 9_000, error: new Error('source') }, pieceBytes: 1_000 }));
    await send();
    expect(await visible()).toEqual(uuids);
  });

  test('an interval without events succeeds', async () => {
    const result = await send({ events: [] });
    expect(result.rows).toBe(0);
    expect(await visible()).toEqual([]);
  });

  test('a source that breaks fails with its own error, and nothing is visible', async () => {
    const error = Object.assign(new Error('the source broke'), { code: '57P01' });
    for (const bytes of [0, 5_000, Number.POSITIVE_INFINITY]) {
      const failed = await failureOf(send({ breakAfter: { bytes, error }, pieceBytes: 1_000 }));
      expect(failed).toBe(error);
      if (subject.isAtomic) expect(await visible()).toEqual([]);
    }
  });

  test('cancelled at any point, it ends with the reason, and nothing is visible', async () => {
    for (const at of [0, 1, 5]) {
      const controller = new AbortController();
      const reason = new Error(`cancelled at ${at}`);
      const onPiece = (index: number) => {
        if (index === at) controller.abort(reason);
      };
      const failed = await failureOf(send({ signal: controller.signal, onPiece, pieceBytes: 1_000 }));
      expect(failed).toBe(reason);
      if (subject.isAtomic) expect(await visible()).toEqual([]);
    }
    const already = AbortSignal.abort(new Error('before it began'));
    expect((await failureOf(send({ signal: already }))).message).toBe('before it began');
  });

  test('an attempt that may no longer write changes nothing that others see', async () => {
    await send({ events: events.slice(0, 100) });
    const before = await visible();
    const error = new Error('this run was taken over');
    // Taken over at the beginning, and while the rows were read.
    for (const late of [false, true]) {
      let hasBegun = !late;
      const failed = await failureOf(
        send({
          onPiece: () => {
            hasBegun = true;
          },
          fence: async () => {
            if (hasBegun) throw error;
          },
        }),
      );
      expect(failed).toBe(error);
      expect(await visible()).toEqual(before);
    }
  });

  test('the fence is asked before each step that others see', async () => {
    let asked = 0;
    let visibleAtFence: string[] | undefined;
    await send({
      fence: async () => {
        asked += 1;
        visibleAtFence ??= await visible().catch(() => undefined);
      },
    });
    expect(asked).toBeGreaterThanOrEqual(1);
    expect(visibleAtFence ?? []).toEqual([]);
  });

  test('its test passes, step by step, and leaves nothing', async () => {
    const settings = { type: subject.name, config };
    const steps = testSteps(subject.name) ?? [];
    expect(steps.length).toBeGreaterThan(0);
    for (const index of steps.keys()) {
      const step = await runTestStep(settings, index, surroundings);
      expect(step).toMatchObject({ ...steps[index], result: { status: 'Passed' } });
    }
    expect(await runTestStep(settings, steps.length, surroundings)).toBeUndefined();
    expect(await visible()).toEqual([]);
  });

  test('its address decides whether a change needs the secrets again', () => {
    const destination = requireDestination(subject.name);
    const known = secretKeys(destination.fields);
    const secrets = known.filter((key) => config[key] !== undefined);
    const address = addressOf(destination, config);
    for (const key of Object.keys(address)) expect(Object.keys(destination.fields.shape)).toContain(key);
    for (const key of known) expect(address).not.toHaveProperty(key);
    if (secrets.length === 0) return;
    expect(Object.keys(address).length).toBeGreaterThan(0);
    const stored = { type: subject.name, config };
    const patch = (sent: RawConfig) => patchSettings(stored, { type: subject.name, config: sent });
    // The address as it is asks for nothing. A new one does, wherever the connection would go.
    expect(patch(Object.fromEntries(Object.keys(address).map((key) => [key, config[key]])))).toEqual(stored);
    const elsewhere = subject.nobodyListens?.(config, 1) as RawConfig;
    const change = Object.fromEntries(
      Object.entries(elsewhere).filter(([key, value]) => config[key] !== value),
    );
    expect(() => patch(change)).toThrow(`Configuration missing required secrets: ${listText(secrets)}`);
    const given = Object.fromEntries(secrets.map((key) => [key, config[key]]));
    expect(patch({ ...change, ...given }).config).toEqual({ ...config, ...change });
  });

  test('without its configuration, its test says so', async () => {
    const step = await runTestStep({ type: subject.name, config: {} }, 0, surroundings);
    expect(step?.result?.status).toBe('Failed');
    expect(step?.result?.message).toMatch(/^The test step cannot run as it's not configured\./);
  });

  if (subject.wrongSecret) {
    const wrongSecret = subject.wrongSecret;
    test('a wrong secret is for the operator, and stands in no message', async () => {
      config = wrongSecret(config);
      const failed = await failureOf(send());
      expect(failed).toBeInstanceOf(DestinationError);
      expect(failed).toMatchObject({ code: 'denied', retryable: false });
      expect(textOf(failed)).not.toContain(CANARY);
      const steps = await Promise.all(
        (testSteps(subject.name) ?? []).map((_, index) =>
          runTestStep({ type: subject.name, config }, index, surroundings),
        ),
      );
      expect(steps.map((step) => step?.result?.status)).toContain('Failed');
      expect(JSON.stringify(steps)).not.toContain(CANARY);
    });
  }

  if (subject.nobodyListens) {
    const nobodyListens = subject.nobodyListens;
    test('a server that is not there is tried again', async () => {
      config = nobodyListens(config, await reservePort());
      const failed = await failureOf(send());
      expect(failed).toMatchObject({ code: 'unreachable', retryable: true });
    });

    test('a private address that nobody allowed is refused', async () => {
      const strict = createEgress();
      try {
        surroundings = { ...surroundings, egress: strict };
        const failed = await failureOf(send());
        expect(failed).toMatchObject({ code: 'egress-refused', retryable: false });
        expect(failed.message).toContain('127.0.0.1');
      } finally {
        await strict.close();
      }
    });
  }

  if (subject.files) {
    const files = subject.files;
    const open = () => {
      const destination = bindDestination({ type: subject.name, config }, surroundings);
      if (destination.kind !== 'files') throw new Error('this is no destination of files');
      return destination;
    };

    test('its configuration without its secrets names the files, as a preview does', () => {
      const whole = open().keys(RUN);
      const secrets = secretKeys(requireDestination(subject.name).fields);
      config = Object.fromEntries(Object.entries(config).filter(([key]) => !secrets.includes(key)));
      const keys = open().keys(RUN);
      expect([keys.manifest, keys.file(0)]).toEqual([whole.manifest, whole.file(0)]);
    });

    test('the manifest is written last, and says what is there', async () => {
      const shown: unknown[] = [];
      const fence = async () => {
        shown.push((await open().verify(RUN)).manifest);
      };
      const manifest = await send({ fence });
      // At the beginning, before each of three files, and before the manifest.
      expect(shown).toEqual([null, null, null, null, null]);
      const keys = open().keys(RUN);
      expect(manifest).toMatchObject({
        version: 1,
        export_id: RUN.exportId,
        run_id: 'run-1',
        model: 'events',
        interval: { start: '2026-01-31T12:00:00+00:00', end: '2026-01-31T13:00:00+00:00' },
        format: 'JSONLines',
        compression: null,
        rows: 300,
        hash: 'hash-300',
        files: [
          { key: keys.file(0), rows: 100 },
          { key: keys.file(1), rows: 100 },
          { key: keys.file(2), rows: 100 },
        ],
      });
      const verified = await open().verify(RUN);
      expect(verified.manifest).toEqual(manifest);
      expect(verified.files.map((file) => file.state)).toEqual(['same', 'same', 'same']);
    });

    test('a run with fewer files deletes those that are left over, and no others', async () => {
      const other = {
        ...RUN,
        interval: { start: RUN.interval.end, end: Date.parse('2026-01-31T14:00:00Z') },
      };
      await send({ run: other, events: sampleEvents(2, (index) => ({ uuid: sampleUuid(9_000 + index) })) });
      await send();
      await send({ events: events.slice(0, 150), run: { ...RUN, runId: 'run-2' } });
      expect(await visible()).toEqual([...uuids.slice(0, 150), sampleUuid(9_000), sampleUuid(9_001)]);
      expect((await open().verify(RUN)).manifest?.files).toHaveLength(2);
    });

    test('a manifest that was edited deletes nothing of others', async () => {
      const other = {
        ...RUN,
        interval: { start: RUN.interval.end, end: Date.parse('2026-01-31T14:00:00Z') },
      };
      await send({ run: other, events: sampleEvents(1, () => ({ uuid: sampleUuid(9_000) })) });
      const destination = open();
      const mine = await destination.open(RUN);
      const foreign = destination.keys(other).file(0);
      const sha256 = '0'.repeat(64);
      // Names a file of another interval as its own.
      const sink = await mine.openFile(0);
      await sink.write(Buffer.from('{"uuid":"x"}\n'));
      await sink.close();
      const manifest = await mine.finish({
        files: [{ index: 0, rows: 1, bytes: 13, uncompressedBytes: 13, sha256 }],
        rows: 1,
        hash: 'h',
      });
      await mine.close();
      manifest.files.push({ key: foreign, rows: 1, bytes: 1, sha256 });
      await files.overwrite(config, destination.keys(RUN).manifest, JSON.stringify(manifest));
      await send();
      expect(await visible()).toContain(sampleUuid(9_000));
    });

    test('keys of another export are refused, and left as they are', async () => {
      await send();
      const thief = { ...RUN, exportId: '01990000-bbbb-7000-8000-000000000002' };
      const failed = await failureOf(send({ run: thief, events: events.slice(0, 1) }));
      expect(failed).toMatchObject({ code: 'occupied', retryable: false });
      expect(failed.message).toContain('belongs to another export');
      expect(failed.message).not.toContain(RUN.exportId);
      const mayName = async (id: string) => id === RUN.exportId;
      expect((await failureOf(open().open(thief, { mayName }))).message).toContain(RUN.exportId);
      expect(await visible()).toEqual(uuids);
      expect(await failureOf(open().verify(thief))).toMatchObject({ code: 'occupied' });
    });

    test('something else where the manifest goes is refused, and left as it is', async () => {
      await files.overwrite(config, open().keys(RUN).manifest, JSON.stringify({ files: ['a'] }));
      expect(await failureOf(send())).toMatchObject({ code: 'occupied', retryable: false });
      expect(await visible()).toEqual([]);
    });

    test.each([
      ['empty', ''],
      ['half of one', '{"version": 1, "export_id": "01990000-aaaa'],
      ['of another version', JSON.stringify({ version: 2, export_id: RUN.exportId, parts: [] })],
      ['larger than any manifest', ' '.repeat(64 * 1024 * 1024 + 1)],
    ])('a manifest that is %s is taken over by the export that wrote it', async (_name, text) => {
      await send();
      const { manifest } = open().keys(RUN);
      await files.overwrite(config, manifest, text);
      const asked: string[] = [];
      const wrote = (isOwn: boolean) => async (key: string) => {
        asked.push(key);
        return isOwn;
      };
      const foreign = await failureOf(open().open(RUN, { wrote: wrote(false) }));
      expect(foreign).toMatchObject({ code: 'occupied', retryable: false });
      // One file instead of three: those that no manifest names any more go.
      await send({ events: events.slice(0, 50), perFile: 50, wrote: wrote(true) });
      expect(asked).toEqual([manifest, manifest]);
      expect(await visible()).toEqual(uuids.slice(0, 50));
      expect((await open().verify(RUN)).files.map((file) => file.state)).toEqual(['same']);
    });

    test('an unreadable manifest that names another export is not taken over', async () => {
      const { manifest } = open().keys(RUN);
      await files.overwrite(config, manifest, JSON.stringify({ version: 2, export_id: 'else' }));
      const failed = await failureOf(open().open(RUN, { wrote: async () => true }));
      expect(failed).toMatchObject({ code: 'occupied' });
    });

    test('a part whose manifest is damaged is taken back', async () => {
      await send();
      const { manifest } = open().keys(RUN);
      await files.overwrite(config, manifest, '{');
      expect(await failureOf(open().takeBack(RUN))).toMatchObject({ code: 'occupied' });
      expect(await open().takeBack(RUN, { manifestKey: manifest })).toBe(true);
      expect(await visible()).toEqual([]);
      expect(await open().takeBack(RUN, { manifestKey: manifest })).toBe(false);
    });

    describe('what an attempt left that is over', () => {
      const late = { ...RUN, runId: 'run-2' };
      const others = events.map((one) => ({ ...one, event: 'other' }));
      /** Publishes files, and ends before their manifest is written. */
      async function leave(run = late, left = others) {
        let marks: Record<string, string> | null = null;
        let fences = 0;
        const failed = await failureOf(
          send({
            run,
            events: left,
            onPublish: async (found) => {
              marks = found;
            },
            // The first is asked at the beginning, then one before each of the three files.
            fence: async () => {
              fences += 1;
              if (fences > 4) throw new Error('it has ended');
            },
          }),
        );
        expect(failed.message).toBe('it has ended');
        return {
          ...{ exportId: run.exportId, runId: run.runId, manifestKey: open().keys(run).manifest },
          ...{ marks, hasEnded: true, completedRunId: null },
        };
      }

      test('is removed, and nothing else', async () => {
        const left = await leave();
        expect(await visible()).toHaveLength(uuids.length);
        const fence = async () => {
          throw new Error('somebody else');
        };
        await expect(open().clear(left, { fence })).rejects.toThrow('somebody else');
        const keys = [0, 1, 2].map((index) => open().keys(RUN).file(index));
        expect(await open().clear(left)).toEqual({ removed: keys, hasDamaged: false });
        expect(await visible()).toEqual([]);
        expect(await open().clear(left)).toEqual({ removed: [], hasDamaged: false });
        // The same keys, written by somebody else.
        const first = await leave();
        await leave({ ...RUN, runId: 'run-3' });
        expect(await open().clear(first)).toEqual({ removed: [], hasDamaged: false });
        expect(await visible()).toHaveLength(uuids.length);
      });

      test('stays where a manifest names it, and is told', async () => {
        await send();
        const left = { ...(await leave()), completedRunId: RUN.runId };
        expect(await open().clear(left)).toEqual({ removed: [], hasDamaged: true });
        expect(await visible()).toEqual(uuids);
        // Exported again, it is whole.
        await send();
        expect(await open().clear(left)).toEqual({ removed: [], hasDamaged: false });
      });

      test('does no damage if it is the same', async () => {
        await send();
        const left = { ...(await leave(late, events)), completedRunId: RUN.runId };
        expect(await open().clear(left)).toEqual({ removed: [], hasDamaged: false });
        expect((await open().verify(RUN)).files.map((file) => file.state)).toEqual(['same', 'same', 'same']);
      });

      test('goes with its manifest if its run did not complete', async () => {
        let marks = {};
        await send({
          onPublish: async (found) => {
            marks = found;
          },
        });
        const left = {
          ...{ exportId: RUN.exportId, runId: RUN.runId, manifestKey: open().keys(RUN).manifest, marks },
        };
        const completed = { ...left, hasEnded: false, completedRunId: RUN.runId };
        expect(await open().clear(completed)).toEqual({ removed: [], hasDamaged: false });
        const replacing = { ...left, hasEnded: true, completedRunId: 'run-0' };
        expect(await open().clear(replacing)).toEqual({ removed: [], hasDamaged: true });
        const { removed } = await open().clear({ ...left, hasEnded: true, completedRunId: null });
        expect(removed).toHaveLength(4);
        expect(await visible()).toEqual([]);
        expect(await open().verify(RUN)).toEqual({ manifest: null, files: [] });
      });
    });

    test('two attempts at once: the second to finish finds that it was overtaken', async () => {
      const destination = open();
      const [first, second] = [
        await destination.open(RUN),
        await destination.open({ ...RUN, runId: 'run-2' }),
      ];
      await first.finish({ files: [], rows: 0, hash: 'first' });
      const failed = await failureOf(second.finish({ files: [], rows: 0, hash: 'second' }));
      expect(failed).toMatchObject({ code: 'overtaken', retryable: true });
      expect((await destination.verify(RUN)).manifest?.hash).toBe('first');
      await Promise.all([first.close(), second.close()]);
    });

    test('verify finds what was changed and what was removed', async () => {
      const manifest = await send();
      const keys = open().keys(RUN);
      await files.overwrite(config, keys.file(1), JSON.stringify({ changed: true }));
      await files.remove(config, keys.file(2));
      expect((await open().verify(RUN)).files.map((file) => file.state)).toEqual([
        'same',
        'different',
        'missing',
      ]);
      expect('files' in manifest && manifest.files).toHaveLength(3);
      expect(await open().verify({ ...RUN, model: 'persons' })).toEqual({ manifest: null, files: [] });
    });

    test('what an interval left is taken back, and nothing of others', async () => {
      const part = { ...RUN, interval: { ...RUN.interval, end: Date.parse('2026-01-31T12:07:01.234Z') } };
      await send({ run: part, events: events.slice(0, 250) });
      await send();
      const thief = { ...part, exportId: '01990000-bbbb-7000-8000-000000000002' };
      expect(await failureOf(open().takeBack(thief))).toMatchObject({ code: 'occupied' });
      const fence = async () => {
        throw new Error('overtaken');
      };
      await expect(open().takeBack(part, { fence })).rejects.toThrow('overtaken');
      expect((await open().verify(part)).files.map((file) => file.state)).toEqual(['same', 'same', 'same']);
      // As if the first try had been killed in the middle.
      await files.remove(config, open().keys(part).file(1));
      expect(await open().takeBack(part)).toBe(true);
      expect(await open().takeBack(part)).toBe(false);
      expect(await visible()).toEqual(uuids);
      expect((await open().verify(RUN)).files.map((file) => file.state)).toEqual(['same', 'same', 'same']);
    });
  }
});
