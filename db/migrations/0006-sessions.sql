-- What is computed from stored rows when it is read: sessions, from the events that name them. And the indexes by
-- which people look for persons.

-- An index holds so many bytes only: of longer emails and names their beginning is indexed. Both together make the
-- update of a person that has an email and a name a fifth dearer; those without (anonymous ones) cost nothing more.
create index persons_email on persons (project_id, (lower(left(properties ->> 'email', 254)) collate "C"))
  where properties ? 'email';
create index persons_name on persons (project_id, (lower(left(properties ->> 'name', 254)) collate "C"))
  where properties ? 'name';
-- A person's distinct ids in their order, the first of them without reading the rest.
drop index person_distinct_ids_person;
create index person_distinct_ids_person on person_distinct_ids (project_id, person_id, distinct_id);

-- When the events of a session can have happened: ids of version 7 begin with the time of their making, and a session
-- lasts 24 hours at most. An hour on both sides is for clocks. NULL: the id does not tell.
create function session_span(session_id text) returns tstzrange immutable parallel safe language sql as $$
  select case when session_id ~ '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$' then tstzrange(
    to_timestamp(('x' || replace(left(session_id, 13), '-', ''))::bit(48)::bigint / 1000.0::float8 - 3600),
    to_timestamp(('x' || replace(left(session_id, 13), '-', ''))::bit(48)::bigint / 1000.0::float8 + 90000)) end
$$;

-- Which sort of site a utm_source or a domain is, see docs/sessions.md: by the whole name, or by the part before the
-- ending (google of www.google.co.uk).
create function channel_kind(name text) returns text immutable parallel safe strict language plpgsql as $$
declare
  whole text := regexp_replace(lower(trim(name)), '^www\.', '');
  first text := split_part(whole, '.', 1);
  site text := coalesce(substring(whole from '([^.]+)(?:\.(?:com?|org|net))?\.[a-z]{2,6}$'), whole);
begin
  return case
    when whole in ('gemini', 'gemini.google.com', 'copilot', 'copilot.microsoft.com', 'grok', 'meta.ai', 'you.com') then 'ai'
    when whole in ('search.brave.com', 'adwords', 'google_ads', 'googleads', 'com.google.android.googlequicksearchbox') then 'search'
    when whole in ('fb', 'ig', 'meta', 'x', 'x.com', 't.co', 'lnkd.in', 'fb.me', 'wa.me', 't.me', 'pin.it', 'redd.it', 'hackernews',
      'news.ycombinator.com', 'com.linkedin.android', 'com.reddit.frontpage', 'com.facebook.katana', 'com.twitter.android')
      then 'social'
    when whole in ('youtu.be', 'yt', 'com.google.android.youtube') then 'video'
    when whole in ('email', 'e-mail', 'mail', 'newsletter', 'com.google.android.gm')
      or first <> whole and first in ('mail', 'email', 'webmail', 'outlook', 'gmail') then 'email'
    when first = 'shopping' and site = 'google' then 'shopping'
    when site in ('mailchimp', 'klaviyo', 'sendgrid', 'customerio', 'customer', 'brevo', 'gmail', 'outlook') then 'email'
    when site in ('chatgpt', 'openai', 'perplexity', 'claude', 'anthropic', 'deepseek', 'mistral', 'poe') then 'ai'
    when site in ('google', 'bing', 'yahoo', 'duckduckgo', 'ecosia', 'baidu', 'yandex', 'qwant', 'startpage', 'kagi', 'naver', 'daum',
      'sogou', 'seznam', 'ask', 'aol') then 'search'
    when site in ('facebook', 'instagram', 'threads', 'twitter', 'linkedin', 'pinterest', 'reddit', 'tiktok', 'snapchat', 'tumblr',
      'quora', 'vk', 'weibo', 'bsky', 'bluesky', 'mastodon', 'discord', 'telegram', 'whatsapp', 'messenger') then 'social'
    when site in ('youtube', 'vimeo', 'twitch', 'dailymotion', 'wistia') then 'video'
    when site in ('amazon', 'ebay', 'etsy', 'aliexpress', 'alibaba', 'walmart', 'rakuten', 'mercadolibre') then 'shopping'
    end;
end $$;

-- Where a session came from; the first rule that fits decides. `clicks`: names of the click ids that it came with.
create function channel_type(utm_source text, utm_medium text, utm_campaign text, referring_domain text, hostname text, clicks text[])
returns text immutable parallel safe language plpgsql as $$
declare
  source text := nullif(lower(trim(utm_source)), '');
  medium text := nullif(lower(trim(utm_medium)), '');
  campaign text := coalesce(lower(utm_campaign), '');
  domain text := nullif(lower(trim(referring_domain)), '');
  source_kind text := channel_kind(source);
  domain_kind text := channel_kind(domain);
  -- Typed in, a bookmark, or from another page of the same site.
  at_home boolean := coalesce(
    domain = '$direct' or regexp_replace(domain, '^www\.', '') = regexp_replace(lower(hostname), '^www\.', ''), false);
begin
  clicks := coalesce(clicks, '{}');
  return case
    when campaign like '%cross-network%' then 'Cross Network'
    when medium in ('affiliate', 'affiliates') or clicks && '{irclid}' then 'Affiliate'
    when medium ~ '^(e[-_ ]?mail|newsletter)$' or source_kind = 'email' or clicks && '{mc_cid,_kx}' then 'Email'
    when medium = 'sms' or source = 'sms' then 'SMS'
    when medium ~ 'push$' or medium ~ 'notification' then 'Push'
    when medium in ('audio', 'podcast') then 'Audio'
    when medium in ('display', 'banner', 'interstitial', 'expandable') then 'Display'
    when medium ~ '^(cp[acmv]|ppc|retargeting|remarketing|paid.*)$'
      or clicks && '{gclid,gad_source,gclsrc,dclid,gbraid,wbraid,msclkid,ttclid,twclid,li_fat_id}' then case
      when campaign ~ '(^|[^a-z])shop(ping)?($|[^a-z])' or source_kind = 'shopping' then 'Paid Shopping'
      when source_kind = 'search' then 'Paid Search'
      when source_kind = 'social' then 'Paid Social'
      when source_kind = 'video' then 'Paid Video'
      when medium like '%social%' then 'Paid Social'
      when medium like '%search%' then 'Paid Search'
      when medium like '%video%' or medium = 'cpv' then 'Paid Video'
      when clicks && '{gclid,gad_source,gclsrc,gbraid,wbraid,msclkid}' then 'Paid Search'
      when clicks && '{ttclid,twclid,li_fat_id,fbclid,igshid}' then 'Paid Social'
      when clicks && '{dclid}' then 'Display'
      when domain_kind = 'search' then 'Paid Search'
      when domain_kind = 'social' then 'Paid Social'
      when domain_kind = 'video' then 'Paid Video'
      when domain_kind = 'shopping' then 'Paid Shopping'
      else 'Paid Unknown' end
    when source in ('direct', '(direct)', '$direct') then 'Direct'
    when source is null and medium is null and at_home and not clicks && '{fbclid,igshid}' then 'Direct'
    when source_kind = 'ai' then 'AI'
    when source_kind = 'search' then 'Organic Search'
    when source_kind = 'social' then 'Organic Social'
    when source_kind = 'video' then 'Organic Video'
    when source_kind = 'shopping' or campaign ~ '(^|[^a-z])shop(ping)?($|[^a-z])' then 'Organic Shopping'
    when medium = 'organic' then 'Organic Search'
    when medium ~ '^(social([-_ ]?(media|network))?|sm)$' then 'Organic Social'
    when medium ~ 'video' then 'Organic Video'
    when medium in ('referral', 'link', 'app') then 'Referral'
    when clicks && '{fbclid,igshid}' then 'Organic Social'
    when at_home or domain is null then 'Unknown'
    when domain_kind = 'email' then 'Email'
    when domain_kind = 'ai' then 'AI'
    when domain_kind = 'search' then 'Organic Search'
    when domain_kind = 'social' then 'Organic Social'
    when domain_kind = 'video' then 'Organic Video'
    when domain_kind = 'shopping' then 'Organic Shopping'
    else 'Referral' end;
end $$;

-- What sessions take from the properties of each event, and from those of the event that they begin with.
create type session_event as ("$current_url" text, "$external_click_url" text, "$web_vitals_LCP_value" text);
create type session_entry as (
  "$referring_domain" text, "$referrer" text,
  utm_source text, utm_campaign text, utm_medium text, utm_term text, utm_content text,
  gclid text, fbclid text, gad_source text, gclsrc text, dclid text, gbraid text, wbraid text, msclkid text, twclid text,
  li_fat_id text, mc_cid text, igshid text, ttclid text, irclid text, _kx text
);

-- A session as it is exported, and its referrer. session_id_v7: the id as a uuid, where it is one that tells its time.
create type session_row as (
  session_id text, session_id_v7 uuid, team_id integer, distinct_id text, start_timestamp timestamptz, end_timestamp timestamptz,
  urls text[], num_uniq_urls integer,
  entry_current_url text, entry_pathname text, entry_hostname text, end_current_url text, end_pathname text, end_hostname text,
  exit_current_url text, exit_pathname text, entry_referring_domain text, entry_referrer text,
  entry_utm_source text, entry_utm_campaign text, entry_utm_medium text, entry_utm_term text, entry_utm_content text,
  entry_gclid text, entry_fbclid text, entry_gad_source text, entry_gclsrc text, entry_dclid text, entry_gbraid text,
  entry_wbraid text, entry_msclkid text, entry_twclid text, entry_li_fat_id text, entry_mc_cid text, entry_igshid text,
  entry_ttclid text, entry_irclid text, entry__kx text,
  pageview_count integer, autocapture_count integer, screen_count integer, channel_type text,
  session_duration integer, duration integer, is_bounce boolean, last_external_click_url text,
  page_screen_autocapture_count_up_to integer, vitals_lcp float8, _inserted_at timestamptz
);

/*
 * Sessions by their ids, from all their events. `near`, beside each id: further stretches of time in which to look for
 * its events, NULL for none; without them, an id that does not tell its time is not found.
 *
 * Where an id tells its time, the events that happened then are the session; events of other times (a clock was wrong)
 * are it only if there are none of the right time. So a session is the same whatever led to it.
 *
 * The stretches of all sessions together are read once, each by the index of events on (project_id, timestamp).
 */
create function sessions_by_id(project integer, ids text[], near tstzmultirange[]) returns setof session_row
stable parallel safe language sql as $$
  with wanted as materialized (
    select id, span, coalesce(tstzmultirange(span), '{}') + coalesce(further, '{}') as stretches
    from (select id, further, session_span(id) as span from unnest(ids, near) as given (id, further) offset 0) as spanned
  ),
  stretches as materialized (select unnest(range_agg(stretches)) as stretch from wanted),
  facts as (
    select id, tells_time, in_span, timestamp, uuid, inserted_at, event, distinct_id,
      nullif((said)."$current_url", '') as url, nullif((said)."$external_click_url", '') as click,
      hq.to_float((said)."$web_vitals_LCP_value") as lcp
    from (
      select w.id, w.span is not null as tells_time, coalesce(w.span @> e.timestamp, false) as in_span, e.timestamp, e.uuid, e.inserted_at, e.event, e.distinct_id,
        json_populate_record(null::session_event, e.properties) as said
      from stretches s
      -- OFFSET 0 holds the planner to this order: stretch by stretch, by the index.
      cross join lateral (
        select * from events e
        where e.project_id = project and e.timestamp >= lower(s.stretch) and e.timestamp < upper(s.stretch)
          and e.session_id is not null
        offset 0) as e
      join wanted w on w.id = e.session_id and e.timestamp <@ w.stretches
      offset 0) as parsed
  ),
  ordered as (
    select *, row_number() over in_time = 1 as is_first, lead(uuid) over in_time is null as is_last,
      url is not null and count(url) over in_time = 1 as is_landing
    from facts
    window in_time as (partition by id, in_span order by timestamp, uuid)
  ),
  summed as (
    select id, tells_time, in_span, min(timestamp) as first_time, max(timestamp) as last_time, max(inserted_at) as inserted_at,
      max(distinct_id) filter (where is_last) as distinct_id,
      coalesce(array_agg(url order by timestamp, uuid) filter (where url is not null), '{}') as visited,
      coalesce((array_agg(uuid) filter (where is_landing))[1], (array_agg(uuid) filter (where is_first))[1]) as entry_uuid,
      coalesce(min(timestamp) filter (where is_landing), min(timestamp)) as entry_time,
      coalesce(min(inserted_at) filter (where is_landing), min(inserted_at) filter (where is_first)) as entry_inserted_at,
      count(*) filter (where event = '$pageview') as pageviews,
      count(*) filter (where event = '$autocapture') as autocaptures,
      count(*) filter (where event = '$screen') as screens,
      (array_agg(click order by timestamp desc, uuid desc) filter (where click is not null))[1] as last_click,
      (array_agg(lcp order by timestamp, uuid) filter (where lcp is not null))[1] as lcp
    from ordered
    group by id, in_span, tells_time
  ),
  chosen as (
    select distinct on (id) *, extract(epoch from last_time) - extract(epoch from first_time) as seconds
    from summed order by id, in_span desc
  )
  select c.id, case when c.tells_time then c.id::uuid end, project, c.distinct_id, c.first_time, c.last_time,
    u.urls[1:1000], cardinality(u.urls),
    u.entry_url, p.entry_path, p.entry_host, u.end_url, p.end_path, p.end_host, u.end_url, p.end_path,
    nullif((e.said)."$referring_domain", ''), nullif((e.said)."$referrer", ''),
    nullif((e.said).utm_source, ''), nullif((e.said).utm_campaign, ''), nullif((e.said).utm_medium, ''),
    nullif((e.said).utm_term, ''), nullif((e.said).utm_content, ''),
    nullif((e.said).gclid, ''), nullif((e.said).fbclid, ''), nullif((e.said).gad_source, ''), nullif((e.said).gclsrc, ''),
    nullif((e.said).dclid, ''), nullif((e.said).gbraid, ''), nullif((e.said).wbraid, ''), nullif((e.said).msclkid, ''),
    nullif((e.said).twclid, ''), nullif((e.said).li_fat_id, ''), nullif((e.said).mc_cid, ''), nullif((e.said).igshid, ''),
    nullif((e.said).ttclid, ''), nullif((e.said).irclid, ''), nullif((e.said)._kx, ''),
    c.pageviews::integer, c.autocaptures::integer, c.screens::integer,
    channel_type((e.said).utm_source, (e.said).utm_medium, (e.said).utm_campaign, (e.said)."$referring_domain",
      p.entry_host, array(select name from (values
        ('gclid', (e.said).gclid), ('fbclid', (e.said).fbclid), ('gad_source', (e.said).gad_source), ('gclsrc', (e.said).gclsrc),
        ('dclid', (e.said).dclid), ('gbraid', (e.said).gbraid), ('wbraid', (e.said).wbraid), ('msclkid', (e.said).msclkid),
        ('twclid', (e.said).twclid), ('li_fat_id', (e.said).li_fat_id), ('mc_cid', (e.said).mc_cid), ('igshid', (e.said).igshid),
        ('ttclid', (e.said).ttclid), ('irclid', (e.said).irclid), ('_kx', (e.said)._kx)) as click (name, value)
        where value <> '')),
    s.seconds, s.seconds,
    case when c.pageviews + c.screens > 0 then c.pageviews + c.screens = 1 and c.autocaptures = 0 and c.seconds < 10 end,
    c.last_click, least(c.pageviews + c.screens + c.autocaptures, 2)::integer, c.lcp, c.inserted_at
  from chosen c
  cross join lateral (select least(floor(c.seconds), 2147483647)::integer as seconds offset 0) as s
  cross join lateral (
    select hq.array_distinct(c.visited) as urls, c.visited[1] as entry_url, c.visited[cardinality(c.visited)] as end_url
    offset 0) as u
  cross join lateral (
    select hq.url_path(u.entry_url) as entry_path, hq.url_domain(u.entry_url) as entry_host,
      hq.url_path(u.end_url) as end_path, hq.url_domain(u.end_url) as end_host
    offset 0) as p
  left join lateral (
    select json_populate_record(null::session_entry, e.properties) as said from events e
    where e.project_id = project and e.timestamp = c.entry_time and e.uuid = c.entry_uuid and e.inserted_at = c.entry_inserted_at
    offset 0) as e on true
$$;

-- The further stretches for a session, some of whose events happened at these times: a day on both sides of each that
-- the id does not tell of.
create function session_near(span tstzrange, happened timestamptz[]) returns tstzmultirange stable parallel safe language sql as $$
  select range_agg(tstzrange(moment - interval '24 hours', moment + interval '24 hours')) from unnest(happened) as moment
  where (span @> moment) is not true
$$;

-- Sessions that began in [start, finish).
create function sessions_begun(project integer, start timestamptz, finish timestamptz) returns setof session_row
stable parallel safe language sql as $$
  select s.*
  from (
    select array_agg(id) as ids, array_agg(session_near(session_span(id), happened)) as near
    from (
      select e.session_id as id, array_agg(e.timestamp) as happened from events e
      where e.project_id = project and e.timestamp >= start and e.timestamp < finish and e.session_id is not null
      group by e.session_id) as found) as wanted
  cross join lateral sessions_by_id(project, wanted.ids, wanted.near) as s
  where s.start_timestamp >= start and s.start_timestamp < finish
$$;

-- Sessions of which an event came in, by the horizon's time, in [start, finish); whole, with their other events.
create function sessions_changed(project integer, start timestamptz, finish timestamptz) returns setof session_row
stable parallel safe language sql as $$
  select s.*
  from (
    select array_agg(id) as ids, array_agg(session_near(session_span(id), happened)) as near
    from (
      select e.session_id as id, array_agg(e.timestamp) as happened from events e
      where e.project_id = project and e.inserted_at >= start and e.inserted_at < finish and e.session_id is not null
      group by e.session_id) as found) as wanted
  cross join lateral sessions_by_id(project, wanted.ids, wanted.near) as s
$$;

-- All sessions of projects, for queries that ask for no time: reads all events of the project.
create view sessions as
select p.id as project_id, s.*
from projects p
cross join lateral (
  select array_agg(id) as ids, array_agg(session_near(session_span(id), happened)) as near
  from (
    select e.session_id as id, array_agg(e.timestamp) as happened from events e
    where e.project_id = p.id and e.session_id is not null group by e.session_id) as found) as wanted
cross join lateral sessions_by_id(p.id, wanted.ids, wanted.near) as s;
