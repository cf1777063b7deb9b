-- Where the intervals of an export begin that was cut into others before: what came until then is exported already.
alter table batch_exports add column seam_at timestamptz;
