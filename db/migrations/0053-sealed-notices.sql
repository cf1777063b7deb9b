-- Whoever has a SQL login can LISTEN to every channel, and Postgres has no right that says otherwise. So what processes are
-- told is sealed with a secret that no login can read. db/sealed-notices.ts opens it.

create table notice_secret (
  secret bytea not null,
  is_only boolean primary key default true check (is_only)
);
alter table notice_secret enable row level security;
insert into notice_secret (secret)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- Sends a text, sealed, as `transaction.tag.bits`. The tag proves who has sealed it, and is another one in each transaction. Within
-- one it is the same for the same text, so that Postgres sends that once. The bits are the text, filled up to 64 bytes or more.
create function tell(channel text, message text) returns void language plpgsql set search_path = pg_catalog as $$
declare
  key bytea := (select s.secret from public.notice_secret s);
  number text := pg_current_xact_id()::text;
  tag bytea := substr(sha256(key || convert_to('tag ' || number || ' ' || channel || ' ' || message, 'UTF8')), 1, 16);
  blocks int := greatest(2, ceil(octet_length(message) / 32.0)::int);
  plain varbit := ('x' || rpad(encode(convert_to(message, 'UTF8'), 'hex'), 64 * blocks, '0'))::varbit;
  pad varbit;
begin
  select ('x' || string_agg(encode(sha256(key || convert_to('pad ', 'UTF8') || tag || convert_to(block::text, 'UTF8')), 'hex'), '' order by block))::varbit
  into pad from generate_series(1, blocks) as block;
  perform pg_notify(channel, concat_ws('.', number, encode(tag, 'hex'), (plain # pad)::text));
end $$;
revoke all on function tell(text, text) from public;

-- Every trigger that tells processes of a change, as it is now, tells it sealed from here on.
do $$
declare
  one regprocedure;
begin
  for one in
    select oid from pg_proc
    where pronamespace = 'public'::regnamespace and proname <> 'tell' and prosrc like '%pg_notify(''sluice\_%'
  loop
    execute replace(pg_get_functiondef(one), 'perform pg_notify(''sluice_', 'perform public.tell(''sluice_');
  end loop;
end $$;
