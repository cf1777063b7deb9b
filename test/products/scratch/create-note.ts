import { type Pool, transaction } from '../../../db/pool.ts';
import { uuidv7 } from '../../../db/uuid.ts';
import { type Keyring, seal } from '../../../secrets/envelope.ts';
import type { Actor } from '../../../tenancy/actor.ts';
import { audit } from '../../../tenancy/audit.ts';
import { insertNote, type NoteRow } from './rows.ts';

export interface NoteDependencies {
  pool: Pool;
  keyring: Keyring;
}

/** Makes a note in a project. A secret is sealed. */
export async function createNote(
  { pool, keyring }: NoteDependencies,
  actor: Actor,
  projectId: number,
  { text, secret }: { text: string; secret?: string | undefined },
): Promise<NoteRow> {
  const id = uuidv7();
  const sealed = secret === undefined ? null : seal(keyring, secret, `scratch_notes/${id}/secret`);
  const note = { project_id: projectId, id, text, secret: sealed };
  await transaction(pool, async (client) => {
    await insertNote(client, note);
    await audit(client, actor, { scope: 'ScratchNote', itemId: id, activity: 'created', projectId });
  });
  return note;
}
