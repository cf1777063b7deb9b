import { type LiteralType, sqlLiteral } from '../db/sql-literal.ts';

/** A statement without parameters: their values stand in it. Texts from queries are among the values only. */
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
