/** Types of the values that statements without parameters hold. */
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
 * A value as a constant of SQL: for COPY, which takes no parameters. It means what the parameter would mean, whatever is
 * in the value and however the server reads backslashes.
 */
export function sqlLiteral(type: LiteralType, value: string | readonly string[]): string {
  if (!TYPES.has(type)) throw new TypeError(`No literals of the type ${JSON.stringify(type)} are made`);
  if (Array.isArray(value) !== type.endsWith('[]')) {
    throw new TypeError(
      `A literal of the type ${type} is made of ${type.endsWith('[]') ? 'a list' : 'one text'}`,
    );
  }
  if (typeof value === 'string') return `${quoted(value)}::${type}`;
  return value.length === 0 ? `'{}'::${type}` : `array[${value.map(quoted).join(', ')}]::${type}`;
}

/** A text in quotes, without a type. */
export function quoted(text: string): string {
  if (text.includes('\0') || !text.isWellFormed()) {
    throw new TypeError('Postgres has no text with the character 0 or half a surrogate pair');
  }
  const doubled = text.replaceAll("'", "''");
  return doubled.includes('\\') ? ` E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`;
}
