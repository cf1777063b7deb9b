import type { FlagDefinitionRow, FlagProjectRow } from '../rows/definitions.ts';

/** A cohort as it is stored; its filters are JSON. */
export interface CohortRow {
  id: number;
  /** Changes with every change of the cohort. Absent: not known. */
  stamp?: string;
  is_static: boolean;
  filters: string;
}

/** What the database said about the flags of a project. */
export interface DefinitionRows {
  project: FlagProjectRow;
  flags: readonly FlagDefinitionRow[];
  cohorts: readonly CohortRow[];
}

/** Where the definitions of projects are kept for a process that starts while the database is away. */
export interface DefinitionCopies {
  /** `lines` are asked for when the copy is written. */
  save(projectId: number, lines: () => Iterable<string>): void;
  remove(projectId: number): void;
  has(projectId: number): boolean;
  read(projectId: number): Promise<string[] | undefined>;
}

/** The lines of a copy: one about the project, then one for each flag and for each cohort. */
export function* copyOf({ project, flags, cohorts }: DefinitionRows): Iterable<string> {
  yield JSON.stringify({ project, flags: flags.length });
  for (const row of [...flags, ...cohorts]) yield JSON.stringify(row);
}

export function rowsOf([first, ...rest]: readonly string[]): DefinitionRows {
  const { project, flags } = JSON.parse(first as string);
  const rows = rest.map((line) => JSON.parse(line));
  return { project, flags: rows.slice(0, flags), cohorts: rows.slice(flags) };
}
