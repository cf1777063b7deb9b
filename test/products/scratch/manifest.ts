import type { Pool } from '../../../db/pool.ts';
import { Gauge } from '../../../telemetry/metrics.ts';
import type { Product } from '../../../tenancy/product.ts';
import { countNotes, deleteEmptyNotes } from './rows.ts';

export const SCRATCH: Product<{ pool: Pool }> = {
  name: 'scratch',
  docs: 'docs/architecture.md',
  tables: [
    { name: 'scratch_marks', kind: 'data' },
    { name: 'scratch_notes', kind: 'configuration' },
  ],
  sealed: [{ table: 'scratch_notes', column: 'secret' }],
  scopes: ['scratch_note'],
  lockKinds: { notes: 716_394_599 },
  maintenance: [
    {
      name: 'deleteEmptyScratchNotes',
      summary: 'empty notes deleted',
      run: ({ pool }) => deleteEmptyNotes(pool),
    },
  ],
  registerMetrics(registry, pool) {
    new Gauge({
      name: 'sluice_scratch_notes',
      help: 'Notes of all projects.',
      registers: [registry],
      async collect() {
        this.set(await countNotes(pool));
      },
    });
  },
  async diagnose(queryable) {
    const count = await countNotes(queryable);
    return [{ check: 'notes', ok: true, sentence: `There are ${count} notes.` }];
  },
  async personsMerged(client, merges) {
    for (const { projectId, absorbedId, intoId } of merges) {
      await client.query(
        `with gone as (delete from scratch_marks where project_id = $1 and person_id = $2 returning project_id)
         insert into scratch_marks select project_id, $3 from gone on conflict do nothing`,
        [projectId, absorbedId, intoId],
      );
    }
  },
  async personsDeleted(client, projectId, personIds) {
    await client.query('delete from scratch_marks where project_id = $1 and person_id = any($2::uuid[])', [
      projectId,
      personIds,
    ]);
  },
};
