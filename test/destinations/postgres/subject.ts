import { databaseForFile } from '../../support/database.ts';
import { postgresSettings } from '../../support/postgres-settings.ts';
import { CANARY, type Subject } from '../subject.ts';

export function subject(): Subject {
  const database = databaseForFile();
  let serial = 0;
  return {
    isAtomic: true,
    async config() {
      serial += 1;
      return postgresSettings(database.url, `lake_${serial}`);
    },
    wrongSecret: (config) => ({ ...config, password: CANARY }),
    nobodyListens: (config, port) => ({ ...config, port }),
    async visible({ table_name: name }) {
      const { rows } = await database.pool.query(`select to_regclass('public.${name}') is not null as there`);
      if (!rows[0].there) return [];
      const found = await database.pool.query(`select uuid from ${name}`);
      return found.rows.map((row) => row.uuid);
    },
  };
}
