/** The types of values that can be written into a statement as constants. */
export type LiteralType =
  | 'text'
  | 'integer'
  | 'bigint'
  | 'float8'
  | 'numeric'
  | 'boolean'
  | 'uuid'
  | 'timestamp'
  | 'timestamptz'
  | 'date'
  | 'text[]'
  | 'bigint[]'
  | 'float8[]'
  | 'uuid[]';

const TYPES: ReadonlySet<string> = new Set<LiteralType>([
  ...(['text', 'integer', 'bigint', 'float8', 'numeric', 'boolean', 'uuid'] as const),
  ...(['timestamp', 'timestamptz', 'date', 'text[]', 'bigint[]', 'float8[]', 'uuid[]'] as const),
]);

/**
 * Writes a value as a constant of SQL, for COPY, which takes no parameters. It means what the parameter would mean,
 * whatever the value contains and however the server reads backslashes.
 */
export function sqlLiteral(type: LiteralType, value: string | readonly string[]): string {
  if (!TYPES.has(type))
    throw new TypeError(`A value of the type ${JSON.stringify(type)} cannot be written as a literal`);
  if (Array.isArray(value) !== type.endsWith('[]')) {
    throw new TypeError(`A literal of the type ${type} needs ${type.endsWith('[]') ? 'a list' : 'one text'}`);
  }
  if (typeof value === 'string') return `${quoted(value)}::${type}`;
  return value.length === 0 ? `'{}'::${type}` : `array[${value.map(quoted).join(', ')}]::${type}`;
}

/** Writes a text in quotes, without a type. */
export function quoted(text: string): string {
  if (text.includes('\0') || !text.isWellFormed()) {
    throw new TypeError('Postgres cannot store a text with the character 0 or half a surrogate pair');
  }
  const doubled = text.replaceAll("'", "''");
  return doubled.includes('\\') ? ` E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`;
}
