import { type LiteralType, sqlLiteral } from './sql-literal.ts';

/**
 * Replaces the parameters of a statement by their values, for COPY, which takes none. Texts that come from queries are values, so they are always
 * quoted.
 */
export function inlineValues({
  text,
  values,
}: {
  text: string;
  values: readonly (string | string[])[];
}): string {
  return text.replace(/\$(\d+)::([a-z0-9]+(?:\[\])?)/g, (_found, number: string, type: string) =>
    sqlLiteral(type as LiteralType, values[Number(number) - 1] as string | string[]),
  );
}
