-- Whether the last work of an export that ended was completed, as of this turn. The latest turn of both lanes counts.
alter table batch_export_turns add column proven boolean not null default false;
