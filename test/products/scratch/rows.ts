import type { Queryable } from '../../../db/pool.ts';

/** The tables of the product. A real one has a migration for them. */
export const SCRATCH_TABLES = `
  create table scratch_notes (
    project_id integer not null,
    id uuid not null,
    text text not null,
    secret text,
    primary key (project_id, id)
  );
  create table scratch_marks (
    project_id integer not null,
    person_id uuid not null,
    primary key (project_id, person_id)
  );`;

export interface NoteRow {
  project_id: number;
  id: string;
  text: string;
  secret: string | null;
}

export async function insertNote(queryable: Queryable, note: NoteRow): Promise<void> {
  await queryable.query('insert into scratch_notes (project_id, id, text, secret) values ($1, $2, $3, $4)', [
    note.project_id,
    note.id,
    note.text,
    note.secret,
  ]);
}

export async function listNotes(queryable: Queryable, projectId: number): Promise<NoteRow[]> {
  const { rows } = await queryable.query('select * from scratch_notes where project_id = $1 order by id', [
    projectId,
  ]);
  return rows;
}

export async function countNotes(queryable: Queryable): Promise<number> {
  const { rows } = await queryable.query('select count(*)::int as count from scratch_notes');
  return rows[0].count;
}

export async function deleteEmptyNotes(queryable: Queryable): Promise<number> {
  const { rowCount } = await queryable.query(`delete from scratch_notes where text = ''`);
  return rowCount ?? 0;
}
