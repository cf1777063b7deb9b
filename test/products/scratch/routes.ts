import { z } from 'zod';
import { actorOf } from '../../../api/actor.ts';
import type { ApiDependencies, App } from '../../../api/dependencies.ts';
import type { Keyring } from '../../../secrets/envelope.ts';
import { createNote } from './create-note.ts';
import { listNotes } from './rows.ts';

const params = z.object({ project_id: z.string() });
export const scratchNote = z.object({ id: z.uuid(), text: z.string() }).meta({ id: 'ScratchNote' });

export function scratchRoutes(app: App, { pool, keyring }: ApiDependencies): void {
  app.get(
    '/api/projects/:project_id/scratch_notes/',
    {
      config: { access: { scope: 'scratch_note:read' } },
      schema: { tags: ['notes'], summary: 'List notes', params, response: { 200: z.array(scratchNote) } },
    },
    async ({ project }) => listNotes(pool, project.id),
  );

  app.post(
    '/api/projects/:project_id/scratch_notes/',
    {
      config: { access: { scope: 'scratch_note:write' } },
      schema: {
        tags: ['notes'],
        summary: 'Create a note',
        params,
        body: z.object({ text: z.string(), secret: z.string().optional() }),
        response: { 201: scratchNote },
      },
    },
    async (request, reply) => {
      const deps = { pool, keyring: keyring as Keyring };
      return reply.code(201).send(await createNote(deps, actorOf(request), request.project.id, request.body));
    },
  );
}
