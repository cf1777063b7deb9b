import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { JavaScriptProgram } from '../compile.ts';
import type { StoredInputs } from '../rules/definition.ts';
import type { OnError } from '../rules/on-error.ts';

/** A transformation, ready to run. It can be sent to a thread. */
export interface Transformation {
  id: string;
  name: string;
  version: number;
  onError: OnError;
  /** Null: they could not be compiled. */
  filters: Bytecode | null;
  program: JavaScriptProgram;
  /** The text of the program, if it is one that Sluice also knows by heart. Null: it is not. */
  native: string | null;
  /** In their order, with the secret ones. */
  inputs: StoredInputs;
  /** Values that stand for inputs, such as those of integrations. */
  given: Record<string, unknown>;
  /** Which inputs are secret. */
  secret: readonly string[];
  /** Why it cannot run. Null: it can. */
  problem: string | null;
}

/** The enabled transformations of a project, in their order. */
export interface Chain {
  projectId: number;
  version: number;
  /** The address of the project for users. */
  url: string;
  transformations: readonly Transformation[];
  /** About how much it takes in memory, in bytes. */
  size: number;
}

/** What of an event transformations see and may change. */
export interface Transformable {
  uuid: string;
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
  /** Milliseconds. */
  timestamp: number;
  received_at: number;
}

/** What a transformation changed in an event: names without values. */
export interface Change {
  id: string;
  version: number;
  /** The names of properties that it added, changed or removed. */
  properties: string[];
  /** What else it changed. */
  fields?: ('event' | 'distinct_id')[];
}
