// Some of the templates that Sluice ships, written in TypeScript. Each event of a project passes through them, so they do
// at once what their programs take many steps for. They do exactly the same: where a program might do anything else, they
// leave the event to it, and a test compares the two with random events.

import type { HostOptions } from '../../hog/host/index.ts';
import { isObject } from '../../values/json-object.ts';
import { FILTER_PROPERTIES } from '../templates/properties.ts';
import { GEOIP } from '../templates/transformations.ts';
import { URL_MASKING } from '../templates/urls.ts';

type Properties = Record<string, unknown>;

/** Returns the properties as the program would, and the same object if it would change nothing. Undefined: ask the program. */
export type Native = (properties: Properties) => Properties | undefined;
/** Undefined: with these inputs the program runs. */
type NativeTemplate = (
  inputs: Readonly<Record<string, unknown>>,
  place: HostOptions['place'],
) => Native | undefined;

const LONGEST_URL = 8_192;
const LONGEST_MASK = 200;
const MOST_NAMES = 200;
/** Keys that make an object something else for a program, or for JavaScript. */
const ODD = ['__proto__', '__hogDateTime__', '__hogDate__'];

const isOdd = (values: Properties): boolean => ODD.some((key) => Object.hasOwn(values, key));

/** Thrown where the program has to decide. */
const UNKNOWN = Symbol('unknown');

/** Like the function of the same name in programs. */
function namesOf(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.replace(/^ +/, '').replace(/ +$/, ''))
    .filter((name) => name !== '');
}

const geoip: NativeTemplate = (_inputs, place) => (properties) => {
  const { $ip: ip } = properties;
  if (ip !== undefined && ip !== null && typeof ip !== 'string') return undefined;
  return place?.(ip) === undefined ? properties : undefined;
};

function without(values: unknown, path: readonly string[]): unknown {
  if (!isObject(values)) return values;
  if (isOdd(values)) throw UNKNOWN;
  const name = path.join('.');
  let kept = values;
  if (Object.hasOwn(values, name)) {
    kept = {};
    for (const key of Object.keys(values)) if (key !== name) kept[key] = values[key];
  }
  const [first] = path as [string];
  if (path.length < 2 || !Object.hasOwn(kept, first)) return kept;
  const inner = without(kept[first], path.slice(1));
  return inner === kept[first] ? kept : { ...kept, [first]: inner };
}

const filterProperties: NativeTemplate = ({ propertiesToFilter: text }) => {
  if (typeof text !== 'string') return undefined;
  const wanted = namesOf(text).map((name) => ({ name, path: name.split('.') }));
  if (wanted.length > MOST_NAMES) return undefined;
  return (properties) => {
    if (isOdd(properties)) return undefined;
    let current = properties;
    for (const { name, path } of wanted) {
      const isPresent = Object.hasOwn(properties, name) || Object.hasOwn(properties, path[0] as string);
      if (isPresent) current = without(current, path) as Properties;
    }
    return current;
  };
};

/** The properties with URLs, those of the person too. */
const PLACES = [null, '$set', '$set_once'] as const;

const urlMasking: NativeTemplate = ({ urlProperties, maskWith }) => {
  if (!isObject(urlProperties) || isOdd(urlProperties)) return undefined;
  if (maskWith !== undefined && maskWith !== null && typeof maskWith !== 'string') return undefined;
  if ((maskWith ?? '').length > LONGEST_MASK) return undefined;
  const wanted: [property: string, masked: ReadonlySet<string>][] = [];
  for (const [property, parameters] of Object.entries(urlProperties)) {
    if (parameters !== null && typeof parameters !== 'string') return undefined;
    wanted.push([property, new Set(namesOf(parameters ?? '').map((one) => one.toLowerCase()))]);
  }
  if (wanted.length > MOST_NAMES) return undefined;
  return (properties) => {
    if (isOdd(properties)) return undefined;
    let current = properties;
    for (const [property, masked] of wanted) {
      for (const place of PLACES) {
        const values = place === null ? current : current[place];
        if (values === undefined || values === null) continue;
        if (!isObject(values) || isOdd(values)) return undefined;
        const url = Object.hasOwn(values, property) ? values[property] : null;
        if (typeof url !== 'string' || !url.includes('?')) continue;
        if (url.length > LONGEST_URL) return undefined;
        const changed = maskedUrl(url, masked, maskWith ?? '');
        if (changed === url) continue;
        const next = { ...values, [property]: changed };
        current = place === null ? next : { ...current, [place]: next };
      }
    }
    return current;
  };
};

function maskedUrl(url: string, masked: ReadonlySet<string>, mask: string): string {
  const hashAt = url.indexOf('#');
  const before = hashAt < 0 ? url : url.slice(0, hashAt);
  const after = hashAt < 0 ? '' : url.slice(hashAt);
  return maskedPart(before, masked, mask) + maskedPart(after, masked, mask);
}

/** Masks what stands behind the first question mark. */
function maskedPart(part: string, masked: ReadonlySet<string>, mask: string): string {
  const at = part.indexOf('?');
  if (at < 0) return part;
  const kept: string[] = [];
  for (const pair of part.slice(at + 1).split('&')) {
    const name = pair.split('=', 1)[0] as string;
    if (!masked.has(decoded(name).toLowerCase())) kept.push(pair);
    else if (mask !== '') kept.push(`${name}=${mask}`);
  }
  const query = kept.join('&');
  return `${part.slice(0, at)}${query === '' ? '' : '?'}${query}`;
}

function decoded(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** By the program of the template. */
const TEMPLATES: ReadonlyMap<string, NativeTemplate> = new Map([
  [GEOIP.hog, geoip],
  [FILTER_PROPERTIES.hog, filterProperties],
  [URL_MASKING.hog, urlMasking],
]);

/** Answers whether a program is that of such a template. Somebody may have changed the text. */
export const isNative = (hog: string): boolean => TEMPLATES.has(hog);

/** Returns what takes the place of a program for the given inputs. */
export function nativeOf(
  hog: string,
  place: HostOptions['place'],
): ((inputs: Readonly<Record<string, unknown>>) => Native | undefined) | undefined {
  const template = TEMPLATES.get(hog);
  if (!template) return undefined;
  let known: { inputs: object; native: Native | undefined } | undefined;
  return (inputs) => {
    if (known?.inputs !== inputs) known = { inputs, native: guarded(template(inputs, place)) };
    return known.native;
  };
}

const guarded = (native: Native | undefined): Native | undefined =>
  native &&
  ((properties) => {
    try {
      return native(properties);
    } catch (error) {
      if (error === UNKNOWN) return undefined;
      throw error;
    }
  });
