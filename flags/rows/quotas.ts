import type { Queryable } from '../../db/pool.ts';

/** What a process has of the quota of an organization. Numbers count from when the lease was new. */
export interface Lease {
  /** The quota of the organization. Zero: it has none. */
  bound: number;
  /** The earlier lease of this id ended: what was used of it is settled. */
  isNew: boolean;
  /** As much may be used. */
  claimed: number;
  /** As much could be had at most. */
  room: number;
}

export interface LeaseRequest {
  organizationId: string;
  id: string;
  used: number;
  /** What was given out without a lease. */
  beyond: number;
  /** What is to be used from now on. */
  wanted: number;
  spare: number;
  seconds: number;
  /** The quota of an organization that has none of its own. */
  usualBound: number;
}

/** Takes or continues a lease. Undefined: there is no such organization. */
export async function lease(queryable: Queryable, asked: LeaseRequest): Promise<Lease | undefined> {
  const { rows } = await queryable.query(
    `select bound::float8, is_new as "isNew", claimed::float8, room::float8
     from lease_flag_requests($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      ...[asked.organizationId, asked.id, asked.used, asked.beyond],
      ...[asked.wanted, asked.spare, asked.seconds, asked.usualBound],
    ],
  );
  return rows[0];
}

/** Gives a lease back. */
export async function giveBack(
  queryable: Queryable,
  { organizationId, id, used, beyond }: Pick<LeaseRequest, 'organizationId' | 'id' | 'used' | 'beyond'>,
): Promise<void> {
  await queryable.query('select return_flag_requests($1, $2, $3, $4)', [organizationId, id, used, beyond]);
}

/** Sets the monthly quota of an organization. Null: as the setting says. Zero: any number. */
export async function setQuota(
  queryable: Queryable,
  organizationId: string,
  requests: number | null,
): Promise<void> {
  await queryable.query(
    'update organizations set flag_requests_per_month = $2, updated_at = now() where id = $1',
    [organizationId, requests],
  );
}

export interface QuotaRow {
  /** Null: as the setting says. */
  flag_requests_per_month: number | null;
  /** The first day of the month. */
  period: string;
  /** What was used of the quota in this month, and what processes hold at the moment. */
  granted: number;
  held: number;
}

export async function findQuota(queryable: Queryable, organizationId: string): Promise<QuotaRow | undefined> {
  const { rows } = await queryable.query(
    `select o.flag_requests_per_month::float8, m.period::text, coalesce(q.granted, 0)::float8 as granted,
       coalesce((select sum(l.amount - l.claimed) from flag_quota_leases l
         where l.organization_id = o.id and l.period = m.period), 0)::float8 as held
     from organizations o
     cross join (select date_trunc('month', now() at time zone 'utc')::date as period) m
     left join flag_quotas q on q.organization_id = o.id and q.period = m.period
     where o.id = $1`,
    [organizationId],
  );
  return rows[0];
}

/** Forgets up to `limit` quotas of months that are long over. */
export async function expireQuotas(queryable: Queryable, months: number, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from flag_quotas where ctid = any(array(
       select ctid from flag_quotas where period < now() - make_interval(months => $1) limit $2))`,
    [months, limit],
  );
  return rowCount ?? 0;
}
