// Functions for URLs. Like ClickHouse, they work on any text and do not validate it.
import { type Sql, sql } from '../sql.ts';
import type { Type } from '../types.ts';
import { bounds, type FunctionTable, of, within } from './spec.ts';

/** These look at each character or parameter by itself, which takes this many times the text's bytes. */
const pieces = (name: Sql, type: Type, factor: number) =>
  bounds('s', type, (most, url) => sql`hq.${name}(${within(most, url!, factor)})`);
const encode = pieces(sql`url_encode`, 'string', 64);

const decode = pieces(sql`url_decode`, 'string', 32);

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
  extractURLParameters: pieces(sql`url_parameters`, { array: 'string' }, 16),
  extractURLParameterNames: pieces(sql`url_parameter_names`, { array: 'string' }, 32),
  cutQueryString: part(sql`url_cut_query`),
  cutFragment: part(sql`url_cut_fragment`),
  cutQueryStringAndFragment: part(sql`url_cut_query_and_fragment`),
  encodeURLComponent: encode,
  decodeURLComponent: decode,
  tryDecodeURLComponent: decode,
  encodeURLFormComponent: bounds(
    's',
    'string',
    (most, text) => sql`replace(hq.url_encode(${within(most, text!, 64)}), '%20', '+')`,
  ),
  decodeURLFormComponent: bounds(
    's',
    'string',
    (most, text) => sql`hq.url_decode(replace(${within(most, text!, 32)}, '+', ' '))`,
  ),
};
