-- Who acted. Until now only users did; the operator's command line and Sluice itself have no user and no key.
alter table activity_log add column actor text not null default 'user'
  check (actor in ('user', 'operator', 'system'));
