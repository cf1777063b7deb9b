-- Which processes hold which encryption keys, and the rotations of these keys. No key is stored, only ids and fingerprints.

-- A process, as long as it says that it lives.
create table key_holders (
  id uuid primary key,
  process text not null,
  host text not null,
  pid integer not null,
  -- The first key seals new secrets.
  key_ids text[] not null,
  fingerprints text[] not null,
  alive_until timestamptz not null
);

create table key_rotations (
  -- The new key.
  key_id text primary key,
  fingerprint text not null,
  begun_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
-- One rotation after the other.
create unique index key_rotations_open on key_rotations ((true)) where finished_at is null;

-- Whoever has the hash of a wizard's session can ask for its project, so only a hash of it is stored.
update wizard_sessions set hash = 'sha256$' || encode(sha256(convert_to(hash, 'UTF8')), 'hex');
