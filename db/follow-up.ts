import type { Connection, QueryConfig } from 'pg';
import pg from 'pg';
import type { Transaction } from './pool.ts';

/**
 * A query that is sent right after the data of a COPY, before Postgres has answered the COPY. This saves a round trip.
 * If the COPY fails, this query fails too, as does everything until the rollback.
 */
export class FollowUp<Row> {
  readonly rows: Promise<Row[]>;
  readonly #query: pg.Query;
  readonly #submit: pg.Query['submit'];

  constructor(config: QueryConfig) {
    const { promise, resolve, reject } = Promise.withResolvers<Row[]>();
    this.rows = promise;
    // After a failure nobody waits for this answer.
    promise.catch(() => undefined);
    this.#query = new pg.Query(config, (error, result) => {
      if (error) reject(error);
      else resolve(result.rows);
    });
    this.#submit = this.#query.submit;
  }

  send(connection: Connection): void {
    this.#submit.call(this.#query, connection);
  }

  /**
   * Takes over when the COPY is answered: what follows belongs to this query. Resolves when this query is answered,
   * too.
   */
  async receive(client: Transaction): Promise<void> {
    this.#query.submit = () => null;
    client.query(this.#query);
    await this.rows.catch(() => undefined);
  }
}
