import { randomUUID } from 'node:crypto';
import { type Compression, FILE_EXTENSIONS, type Format, fileExtension } from '../formats/formats.ts';
import type { OpenInterval } from '../intervals/index.ts';

export interface KeyOptions {
  /** A template, see docs/exports-destinations.md. */
  prefix: string;
  model: string;
  interval: OpenInterval;
  format: Format;
  compression: Compression | null;
  /** Whether an interval may have several files. Then all of them are numbered, the first one too. */
  numbered: boolean;
}

/** The keys of the files of one interval. They depend only on the export's configuration and on the interval. */
export interface ObjectKeys {
  file(index: number): string;
  manifest: string;
  /** The beginning of every key of the interval. */
  stem: string;
  /** Whether a key belongs to this interval, in any format. */
  owns(key: string): boolean;
}

/** What the key of a manifest tells about the keys of its interval. */
export type PlaceKeys = Pick<ObjectKeys, 'manifest' | 'stem' | 'owns'>;

const FILE_NAME = new RegExp(
  `^(-\\d{1,9})?\\.(${FILE_EXTENSIONS.map((one) => one.replaceAll('.', '\\.')).join('|')})$`,
);
const MANIFEST = '_manifest.json';
/** The longest key of S3, less the longest name of a file. */
const LONGEST_PREFIX_BYTES = 850;

/** ISO 8601 in UTC, as `2026-01-31T12:00:00+00:00`. A fraction is written only if it is not zero. */
export function isoText(instant: number): string {
  const text = new Date(instant).toISOString();
  const fraction = text.slice(19, 23);
  return `${text.slice(0, 19)}${fraction === '.000' ? '' : `${fraction}000`}+00:00`;
}

const boundText = (instant: number | null) => (instant === null ? 'None' : isoText(instant));

function variables(interval: OpenInterval, model: string): Map<string, string> {
  const end = new Date(interval.end).toISOString();
  return new Map([
    ['year', end.slice(0, -20)],
    ['month', end.slice(-19, -17)],
    ['day', end.slice(-16, -14)],
    ['hour', end.slice(-13, -11)],
    ['minute', end.slice(-10, -8)],
    ['second', end.slice(-7, -5)],
    ['data_interval_start', boundText(interval.start)],
    ['data_interval_end', isoText(interval.end)],
    ['table', model],
  ]);
}

const TEMPLATE = /\{\{|\}\}|\{([^{}]*)\}|[{}]/g;

function expand(prefix: string, values: ReadonlyMap<string, string>): string {
  return prefix.replace(TEMPLATE, (found, name: string | undefined) => {
    if (found === '{{') return '{';
    if (found === '}}') return '}';
    return values.get(name ?? '') ?? found;
  });
}

/** As long as the names of models are. */
const SAMPLE_MODEL = 'a model.';

const SAMPLE: OpenInterval = {
  start: Date.parse('2026-01-31T12:00:00.123Z'),
  end: Date.parse('2026-01-31T13:00:00.123Z'),
};

/** Why a prefix cannot be used. Undefined if it can. */
export function prefixProblem(prefix: string): string | undefined {
  const known = variables(SAMPLE, SAMPLE_MODEL);
  for (const [found, name] of prefix.matchAll(TEMPLATE)) {
    if (found === '{{' || found === '}}') continue;
    if (name === undefined)
      return `The prefix has a '${found}' without its counterpart; write '${found}${found}' for the character`;
    if (!known.has(name))
      return `The prefix has the unknown variable '{${name}}'. Known variables are ${[...known.keys()].map((one) => `'{${one}}'`).join(', ')}`;
  }
  const expanded = expand(prefix, known);
  const segments = expanded.split('/');
  if (segments.some((segment) => segment === '..' || segment === '.'))
    return `The prefix must not have the segments '.' and '..'`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\u0000-\u001f\u007f\\]/.test(expanded) || !expanded.isWellFormed())
    return 'The prefix must not have control characters, backslashes or halves of characters';
  if (Buffer.byteLength(expanded) > LONGEST_PREFIX_BYTES)
    return `The prefix is longer than ${LONGEST_PREFIX_BYTES} bytes`;
  return undefined;
}

/** The prefix as the beginning of a key: no slash in front, a single one between segments, one at the end. */
function folderOf(expanded: string): string {
  const segments = expanded.split('/').filter((segment) => segment !== '');
  return segments.length === 0 ? '' : `${segments.join('/')}/`;
}

/** The keys of an interval, derived from the key of its manifest. For files of an earlier configuration. */
export function keysAt(manifest: string): PlaceKeys {
  const stem = manifest.slice(0, -MANIFEST.length);
  return { manifest, stem, owns: ownedBy(stem) };
}

const ownedBy = (stem: string) => (key: string) =>
  key.startsWith(stem) && FILE_NAME.test(key.slice(stem.length));

export function objectKeys(options: KeyOptions): ObjectKeys {
  const { prefix, model, interval, format, compression, numbered } = options;
  const stem = `${folderOf(expand(prefix, variables(interval, model)))}${boundText(interval.start)}-${isoText(interval.end)}`;
  const extension = `.${fileExtension(format, compression)}`;
  return {
    file: (index) => `${stem}${numbered || index > 0 ? `-${index}` : ''}${extension}`,
    manifest: `${stem}${MANIFEST}`,
    stem,
    owns: ownedBy(stem),
  };
}

/** The key of an object that tests a connection, in a folder that contains every key of the export: the prefix up to its first variable. */
export function probeKey(prefix: string): string {
  const fixed = prefix.split('{')[0] as string;
  const folder = fixed.slice(0, fixed.lastIndexOf('/') + 1).replace(/^\/+/, '');
  return `${folder}.sluice-test-${randomUUID()}`;
}
