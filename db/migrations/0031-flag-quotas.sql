-- How many requests for flags an organization may make in a month, and how many each project made.

-- Null: as the setting says. Zero: any number.
alter table organizations add column flag_requests_per_month bigint check (flag_requests_per_month >= 0);

-- What the organizations with a quota have of it in a month.
create table flag_quotas (
  organization_id uuid not null references organizations on delete cascade,
  -- The first day of the month, in UTC.
  period date not null,
  -- What was used, and what processes hold.
  granted bigint not null default 0,
  primary key (organization_id, period)
);

-- What a process holds, so that no request has to write.
create table flag_quota_leases (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  period date not null,
  amount bigint not null,
  -- As much of it the process may have used by now. When it dies, the rest comes back after the lease's end.
  claimed bigint not null check (claimed <= amount),
  expires_at timestamptz not null
);
create index flag_quota_leases_organization on flag_quota_leases (organization_id, expires_at);

-- Takes, extends or continues a lease. `used` is what the process used of it since it was new, `beyond` what it gave out
-- without any lease while it could not reach the database. `wanted` is what it may use from now on; it sets `spare` aside
-- for later. What is answered counts from when the lease was new. No row: there is no such organization.
create function lease_flag_requests(of_organization uuid, lease uuid, used bigint, beyond bigint, wanted bigint,
  spare bigint, seconds double precision, usual_bound bigint)
returns table (bound bigint, is_new boolean, claimed bigint, room bigint) language plpgsql as $$
declare
  this_month date := date_trunc('month', now() at time zone 'utc')::date;
  mine flag_quota_leases;
  total bigint;
  next_amount bigint;
  next_claimed bigint;
begin
  select coalesce(o.flag_requests_per_month, usual_bound) into bound from organizations o where o.id = of_organization;
  if not found then
    return;
  end if;
  insert into flag_quotas (organization_id, period) values (of_organization, this_month) on conflict do nothing;
  -- Whoever changes what an organization has holds this row.
  select q.granted into total from flag_quotas q
    where q.organization_id = of_organization and q.period = this_month for update;

  -- Leases of processes that died, and this one if it is of another month: they may have used what they claimed.
  with gone as (
    delete from flag_quota_leases l where l.organization_id = of_organization
      and (l.id <> lease and l.expires_at < clock_timestamp() or l.id = lease and l.period <> this_month)
    returning l.period, l.amount, l.claimed),
  back as (select g.period, sum(g.amount - g.claimed) as amount from gone g group by g.period)
  update flag_quotas q set granted = q.granted - back.amount from back
    where q.organization_id = of_organization and q.period = back.period;
  select q.granted into total from flag_quotas q where q.organization_id = of_organization and q.period = this_month;

  select * into mine from flag_quota_leases l where l.id = lease;
  is_new := mine.id is null;
  if is_new then
    used := 0;
    mine.amount := 0;
    mine.claimed := 0;
  end if;
  total := total + beyond;
  room := case when bound = 0 then 9007199254740991 else greatest(0, bound - (total - mine.amount)) end;
  -- What is claimed may be used at this moment, so it never becomes less.
  next_amount := greatest(mine.claimed, least(used + wanted + spare, room));
  next_claimed := greatest(mine.claimed, least(used + wanted, next_amount));
  insert into flag_quota_leases as l (id, organization_id, period, amount, claimed, expires_at)
  values (lease, of_organization, this_month, next_amount, next_claimed, clock_timestamp() + make_interval(secs => seconds))
  on conflict (id) do update set amount = excluded.amount, claimed = excluded.claimed, expires_at = excluded.expires_at;
  update flag_quotas q set granted = total + next_amount - mine.amount
    where q.organization_id = of_organization and q.period = this_month;
  claimed := next_claimed;
  return next;
end $$;

-- Gives back what was not used. The process uses nothing of the lease any more.
create function return_flag_requests(of_organization uuid, lease uuid, used bigint, beyond bigint)
returns void language plpgsql as $$
declare
  this_month date := date_trunc('month', now() at time zone 'utc')::date;
begin
  insert into flag_quotas (organization_id, period)
    select id, this_month from organizations where id = of_organization on conflict do nothing;
  perform from flag_quotas where organization_id = of_organization and period = this_month for update;
  with gone as (
    delete from flag_quota_leases l where l.id = lease and l.organization_id = of_organization
    returning l.period, l.amount)
  update flag_quotas q set granted = q.granted - (gone.amount - least(used, gone.amount)) from gone
    where q.organization_id = of_organization and q.period = gone.period;
  update flag_quotas q set granted = granted + beyond
    where beyond > 0 and q.organization_id = of_organization and q.period = this_month;
end $$;

create table flag_usage (
  project_id integer not null,
  day date not null,
  -- Requests for the flags of somebody.
  requests bigint not null default 0,
  -- Requests for definitions. Each counts as ten.
  definitions bigint not null default 0,
  -- Requests that got no flags, because nothing was left.
  limited bigint not null default 0,
  primary key (project_id, day)
);

-- Processes learn of another quota with the definitions of the organization's projects.
create function tell_of_flag_quota() returns trigger language plpgsql as $$
begin
  perform pg_notify('sluice_flags', p.id::text) from projects p where p.organization_id = new.id;
  return null;
end $$;
create trigger tell_of_flag_quota after update of flag_requests_per_month on organizations
  for each row when (old.flag_requests_per_month is distinct from new.flag_requests_per_month)
  execute function tell_of_flag_quota();
