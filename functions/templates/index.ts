import { MAKE, REPLICATOR, ZAPIER } from './automation.ts';
import { BRAZE } from './braze.ts';
import { BREVO } from './brevo.ts';
import { DISCORD, MICROSOFT_TEAMS, TELEGRAM } from './chats.ts';
import { CUSTOMERIO } from './customerio.ts';
import { DROP_EVENTS } from './drop-events.ts';
import { HUBSPOT, HUBSPOT_COMPANY, HUBSPOT_EVENT } from './hubspot.ts';
import { GITHUB, GITLAB, LINEAR } from './issues.ts';
import { KLAVIYO_EVENT, KLAVIYO_USER } from './klaviyo.ts';
import { LOOPS, LOOPS_EVENT } from './loops.ts';
import { TWILIO, WHATSAPP } from './phones.ts';
import { FILTER_PROPERTIES, HASH_PROPERTIES, PII_HASHING } from './properties.ts';
import { SENDGRID } from './sendgrid.ts';
import { BLANK_SITE_APP, BLANK_SITE_DESTINATION, NOTIFICATION_BAR } from './sites.ts';
import { SLACK } from './slack.ts';
import type { Template } from './template.ts';
import {
  BLANK_TRANSFORMATION,
  BOT_DETECTION,
  GEOIP,
  IP_ANONYMIZATION,
  REMOVE_NULL_PROPERTIES,
} from './transformations.ts';
import { URL_MASKING, URL_NORMALIZATION } from './urls.ts';
import { USERLIST } from './userlist.ts';
import { WEBHOOK } from './webhook.ts';

/** All templates. A further one is a file and a line here. */
export const TEMPLATES: readonly Template[] = [
  WEBHOOK,
  ...[SLACK, DISCORD, MICROSOFT_TEAMS, TELEGRAM],
  ...[ZAPIER, MAKE, REPLICATOR],
  ...[LINEAR, GITHUB, GITLAB],
  ...[TWILIO, WHATSAPP],
  ...[CUSTOMERIO, HUBSPOT, HUBSPOT_COMPANY, HUBSPOT_EVENT, SENDGRID, BREVO, LOOPS, LOOPS_EVENT],
  ...[KLAVIYO_USER, KLAVIYO_EVENT, BRAZE, USERLIST],
  ...[BLANK_TRANSFORMATION, DROP_EVENTS, GEOIP, IP_ANONYMIZATION, REMOVE_NULL_PROPERTIES, BOT_DETECTION],
  ...[FILTER_PROPERTIES, HASH_PROPERTIES, PII_HASHING],
  ...[URL_MASKING, URL_NORMALIZATION],
  ...[BLANK_SITE_APP, BLANK_SITE_DESTINATION, NOTIFICATION_BAR],
];

const byId = new Map(TEMPLATES.map((one) => [one.id, one]));

export const findTemplate = (id: string): Template | undefined => byId.get(id);
