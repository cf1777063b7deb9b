import type { Connection, QueryConfig } from 'pg';
import pg from 'pg';
import type { Transaction } from './pool.ts';

/**
 * A query that is sent right behind the data of a COPY, before Postgres has answered that: one way there and back
 * less. When the COPY fails, so does this, as everything until the rollback.
 */
export class FollowUp<Row> {
  readonly rows: Promise<Row[]>;
  readonly #query: pg.Query;
  readonly #submit: pg.Query['submit'];

  constructor(config: QueryConfig) {
    const { promise, resolve, reject } = Promise.withResolvers<Row[]>();
    this.rows = promise;
    // Nobody waits for the answer in a transaction that has failed.
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

  /** The COPY was answered: what comes now is for this query. Resolves when it was answered, too. */
  async receive(client: Transaction): Promise<void> {
    this.#query.submit = () => null;
    client.query(this.#query);
    await this.rows.catch(() => undefined);
  }
}
