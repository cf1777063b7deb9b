import { existsSync } from 'node:fs';
import path from 'node:path';
import type { RawConfig } from '../../destinations/config.ts';
import { DESTINATION_TYPES, requireDestination } from '../../destinations/registry.ts';

/** A destination as the conformance suite meets it, against the real service. */
export interface Subject {
  /** A place of its own for each test. */
  config(): Promise<RawConfig>;
  /** The same, with a secret that is wrong; undefined for destinations without one. */
  wrongSecret?(config: RawConfig): RawConfig;
  /** The same, at a port where nobody listens. It changes the address. */
  nobodyListens?(config: RawConfig, port: number): RawConfig;
  /** The uuids that a reader finds, each as often as it is there. Also looks for what an attempt must not leave. */
  visible(config: RawConfig): Promise<string[]>;
  /** Whether a failed attempt leaves nothing that can be seen. */
  isAtomic: boolean;
  /** For destinations of files: changes what is there, as somebody else would. */
  files?: {
    overwrite(config: RawConfig, key: string, text: string): Promise<void>;
    remove(config: RawConfig, key: string): Promise<void>;
  };
}

/** What the suite has for its subjects. */
export interface Fixture {
  exportRoot(): string;
}

/** What `test/destinations/<type>/subject.ts` exports: a subject, or the reason why the suite has nothing to look at. */
export interface SubjectModule {
  subject?(fixture: Fixture): Subject;
  waiver?: string;
}

/** The secret that no message may contain. */
export const CANARY = 'canary-of-a-secret';

/** The uuids in a file of JSON lines. */
export const uuidsIn = (text: string): string[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { uuid: string }).uuid);

/** The folder of a destination, here and in destinations/: `NoOp` is in `no-op`. */
export const folderOfType = (type: string): string =>
  type.replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase();

/** The destinations, each by the first of its names. */
export const firstTypes = (): string[] =>
  DESTINATION_TYPES.filter((type) => requireDestination(type).types[0] === type);

/** Finds the subject of every destination in the registry. Throws if one is missing. */
export async function findSubjects(fixture: Fixture): Promise<(Subject & { name: string })[]> {
  const found = await Promise.all(
    firstTypes().map(async (name) => {
      const file = path.join(import.meta.dirname, folderOfType(name), 'subject.ts');
      if (!existsSync(file)) throw new Error(`${name} has no subject: write ${file}`);
      const { subject, waiver }: SubjectModule = await import(file);
      if (!subject && !waiver) throw new Error(`${file} exports neither a subject nor a waiver`);
      return subject ? [{ name, ...subject(fixture) }] : [];
    }),
  );
  return found.flat();
}
