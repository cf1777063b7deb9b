// Which keys of a configuration are secret: zod objects mark them with `.meta({ secret: true })`.
import { z } from 'zod';

export type Fields = z.ZodObject<Record<string, z.ZodType>>;
type Config = Record<string, unknown>;

/** Answers whether a key is marked. A mark also counts below what makes the key optional. */
export function isSecret(field: z.ZodType | undefined): boolean {
  for (
    let at = field;
    at;
    at =
      at instanceof z.ZodNullable || at instanceof z.ZodOptional || at instanceof z.ZodDefault
        ? (at.unwrap() as z.ZodType)
        : undefined
  ) {
    if (at.meta()?.secret === true) return true;
  }
  return false;
}

export const secretKeys = ({ shape }: Fields): string[] =>
  Object.keys(shape).filter((key) => isSecret(shape[key]));

/** The configuration for answers: without its secrets, and without keys that are not known. */
export const withoutSecretKeys = ({ shape }: Fields, config: Config): Config =>
  Object.fromEntries(
    Object.entries(config).filter(([key]) => Object.hasOwn(shape, key) && !isSecret(shape[key])),
  );

/** The secrets of a configuration. */
export const onlySecretKeys = ({ shape }: Fields, config: Config): Config =>
  Object.fromEntries(Object.entries(config).filter(([key]) => isSecret(shape[key])));
