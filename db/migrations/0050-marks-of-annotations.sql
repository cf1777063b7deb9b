-- What a tool with charts shows of an annotation. Sluice keeps both.
alter table annotations add column emoji text;
alter table annotations add column hidden_in_user_interface boolean;
