import type { Keyring } from '../../secrets/envelope.ts';
import type { FunctionRow } from '../rows/functions.ts';
import type { CompiledContent } from '../rules/definition.ts';
import { openInputs } from './secrets.ts';

/** Returns what a stored function runs: its code, and its inputs with the secret ones. Throws a SecretError if they cannot be read. */
export function runningContent(keyring: Keyring | undefined, row: FunctionRow): CompiledContent {
  const secrets = openInputs(keyring, row);
  const { hog, inputs_schema, filters, masking, bytecode, transpiled, warnings } = row;
  return {
    ...{ hog, inputs_schema, filters, masking, bytecode, transpiled, warnings },
    inputs: { ...row.inputs, ...secrets.inputs },
    mappings:
      row.mappings?.map((one, index) => ({
        ...one,
        inputs: { ...one.inputs, ...secrets.mappings[index]?.inputs },
      })) ?? null,
  };
}
