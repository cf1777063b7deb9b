// Functions for URLs. Like ClickHouse, they work on any text and do not validate it.
import { type Sql, sql } from '../sql.ts';
import { type FunctionTable, of } from './spec.ts';

const part = (name: Sql) => of('s', 'string', (url) => sql`hq.${name}(${url})`);

export const URLS: FunctionTable = {
  protocol: part(sql`url_protocol`),
  domain: part(sql`url_domain`),
  domainRFC: part(sql`url_domain`),
  domainWithoutWWW: part(sql`url_domain_without_www`),
  domainWithoutWWWRFC: part(sql`url_domain_without_www`),
  cutWWW: part(sql`url_cut_www`),
  topLevelDomain: part(sql`url_top_level_domain`),
  topLevelDomainRFC: part(sql`url_top_level_domain`),
  port: of(
    's i?',
    'int',
    (url, fallback) => sql`coalesce(hq.url_port(${url}), ${fallback ?? sql`0::bigint`})`,
  ),
  path: part(sql`url_path`),
  pathFull: part(sql`url_path_full`),
  queryString: part(sql`url_query`),
  fragment: part(sql`url_fragment`),
  queryStringAndFragment: part(sql`url_query_and_fragment`),
  extractURLParameter: of('s s', 'string', (url, name) => sql`hq.url_parameter(${url}, ${name})`),
  extractURLParameters: of('s', { array: 'string' }, (url) => sql`hq.url_parameters(${url})`),
  extractURLParameterNames: of('s', { array: 'string' }, (url) => sql`hq.url_parameter_names(${url})`),
  cutQueryString: part(sql`url_cut_query`),
  cutFragment: part(sql`url_cut_fragment`),
  cutQueryStringAndFragment: part(sql`url_cut_query_and_fragment`),
  encodeURLComponent: part(sql`url_encode`),
  decodeURLComponent: part(sql`url_decode`),
  encodeURLFormComponent: of('s', 'string', (text) => sql`replace(hq.url_encode(${text}), '%20', '+')`),
  decodeURLFormComponent: of('s', 'string', (text) => sql`hq.url_decode(replace(${text}, '+', ' '))`),
};
