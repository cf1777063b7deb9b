// Values in the browser. The text of these functions is what runs there (see assemble.ts): they use each other
// and JavaScript's own objects, nothing else, and have no remarks inside.

/** Values of all kinds, looked at by hand. */
export type Value = ReturnType<typeof JSON.parse>;

export interface Run {
  steps: number;
  depth: number;
  options: BrowserOptions;
}

export interface BrowserOptions {
  functions?: Record<string, (...args: unknown[]) => unknown>;
  onPrint?: (line: string) => void;
  maxSteps?: number;
}

export function fail(message: string): never {
  throw new Error(message);
}

export function has(value: Value, ...keys: string[]): boolean {
  return typeof value === 'object' && value !== null && keys.every((key) => key in value);
}

export function isDate(value: Value): boolean {
  return has(value, '__hogDate__', 'year', 'month', 'day');
}

export function isDateTime(value: Value): boolean {
  return has(value, '__hogDateTime__', 'dt', 'zone');
}

export function isError(value: Value): boolean {
  return has(value, '__hogError__', 'type', 'message');
}

export function isCallable(value: Value): boolean {
  return has(value, '__hogCallable__', 'argCount');
}

export function isClosure(value: Value): boolean {
  return has(value, '__hogClosure__', 'callable');
}

export function newError(type: Value, message: Value, payload?: Value): Value {
  return { __hogError__: true, type: type || 'Error', message: message || 'An error occurred', payload };
}

export function newDate(year: number, month: number, day: number): Value {
  return { __hogDate__: true, year, month, day };
}

export function newDateTime(dt: number, zone?: Value): Value {
  return { __hogDateTime__: true, dt, zone: zone || 'UTC' };
}

export function markTuple(list: Value): Value {
  list.__isHogTuple = true;
  return list;
}

export function newClosure(kind: string, name: string, argCount: number, body: Value): Value {
  const callable = { __hogCallable__: kind, name, chunk: 'root', argCount, upvalueCount: 0, ip: 0 };
  const closure = { __hogClosure__: true, callable, upvalues: [] };
  Object.defineProperty(closure, 'body', { value: body });
  return closure;
}

export function escapeText(text: string): string {
  const escapes: Record<string, string> = {
    '\b': '\\b',
    '\f': '\\f',
    '\r': '\\r',
    '\n': '\\n',
    '\t': '\\t',
    '\0': '\\0',
    '\v': '\\v',
    '\\': '\\\\',
    "'": "\\'",
  };
  return `'${text
    .split('')
    .map((one) => escapes[one] ?? one)
    .join('')}'`;
}

export function functionName(name: string): string {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : `\`${name.replaceAll('`', '``')}\``;
}

/** A value as text, as the program would write it. */
export function print(value: Value, around: Value[] = []): string {
  if (typeof value === 'string') return escapeText(value);
  if (value === null || value === undefined) return 'null';
  if (typeof value !== 'object') return String(value);
  const known = isDateTime(value) || isDate(value) || isError(value) || isClosure(value) || isCallable(value);
  if (around.includes(value) && !known) return 'null';
  const inner = [...around, value];
  const one = (item: Value): string => print(item, inner);
  if (Array.isArray(value)) {
    const items = value.map(one).join(', ');
    if (!(value as Value).__isHogTuple) return `[${items}]`;
    return value.length < 2 ? `tuple(${items})` : `(${items})`;
  }
  if (isDateTime(value)) {
    const seconds = String(value.dt);
    return `DateTime(${seconds}${seconds.includes('.') ? '' : '.0'}, ${escapeText(value.zone)})`;
  }
  if (isDate(value)) return `Date(${value.year}, ${value.month}, ${value.day})`;
  if (isError(value)) {
    return `${value.type}(${escapeText(value.message)}${value.payload ? `, ${one(value.payload)}` : ''})`;
  }
  if (isClosure(value)) return print(value.callable, inner);
  if (isCallable(value)) return `fn<${functionName(value.name ?? 'lambda')}(${print(value.argCount)})>`;
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return `{${entries.map(([key, item]) => `${one(key)}: ${one(item)}`).join(', ')}}`;
}

export function printOut(value: Value): string {
  return typeof value === 'string' ? value : print(value);
}

/** A value of the page as a value of the program. */
export function toHog(value: Value): Value {
  if (typeof value === 'bigint') return Number(value);
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return null;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const list = value.map((item) => toHog(item));
    return (value as Value).__isHogTuple ? markTuple(list) : list;
  }
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [toHog(key), toHog(item)]));
  if (isDateTime(value)) return newDateTime(value.dt, value.zone);
  if (isDate(value)) return newDate(value.year, value.month, value.day);
  if (value instanceof Date) return newDateTime(value.getTime() / 1000, 'UTC');
  return new Map(Object.keys(value).map((key) => [key, toHog(value[key])]));
}

/** A value of the program as plain data. A cycle ends in null. */
export function toHost(value: Value, around: Value[] = []): Value {
  if (value === undefined) return null;
  if (typeof value !== 'object' || value === null || isDateTime(value) || isDate(value)) return value;
  if (isClosure(value) || isCallable(value)) return print(value);
  if (around.includes(value)) return null;
  const inner = [...around, value];
  if (Array.isArray(value)) return value.map((item) => toHost(item, inner));
  const plain = {};
  for (const [key, item] of value instanceof Map ? value : Object.entries(value)) {
    const name = typeof key === 'string' ? key : print(key);
    const property = { value: toHost(item, inner), enumerable: true, configurable: true, writable: true };
    Object.defineProperty(plain, name, property);
  }
  return plain;
}
