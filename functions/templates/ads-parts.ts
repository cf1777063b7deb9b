// Parts of templates that send conversions.
import { MONEY } from './inputs.ts';

/** The template of an input: the hash of a property of the person, in lower case and without spaces around it. */
export const hashed = (property: string) =>
  `{empty(person.properties.${property}) ? null : sha256Hex(lower(trim(toString(person.properties.${property}))))}`;
/** Of a phone number, only the digits are hashed, with `before` in front of them. */
export const hashedPhone = (before: string) =>
  `{empty(person.properties.phone) ? null : sha256Hex(concat('${before}', replaceAll(replaceAll(replaceAll(replaceAll(replaceAll(toString(person.properties.phone), '+', ''), ' ', ''), '-', ''), '(', ''), ')', '')))}`;
export const VALUE = `{toFloat(${MONEY})}`;
export const SECONDS = '{toInt(toUnixTimestamp(toDateTime(event.timestamp)))}';

/** The products of an order. An event without a list has none. */
export const PRODUCTS = 'event.properties.products ?? []';
/** How many pieces an order has. */
export const COUNT = `{arrayReduce((sum, one) -> sum + (one.quantity ?? 1), ${PRODUCTS}, 0)}`;
/** The template of an input: a list with what is known of the only product, or an empty list. */
export const product = (what: string) =>
  `{empty(event.properties.sku ?? event.properties.product_id) ? [] : [${what}]}`;
