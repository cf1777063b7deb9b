import { ACCOIL, APPCUES, KLIME } from './accounts.ts';
import { ACTIVECAMPAIGN } from './activecampaign.ts';
import { META_ADS, TIKTOK_ADS } from './ads.ts';
import { AIRTABLE } from './airtable.ts';
import { AVO, CLEARBIT, RUDDERSTACK } from './analytics.ts';
import { ATTIO } from './attio.ts';
import { MAKE, REPLICATOR, ZAPIER } from './automation.ts';
import { BEEHIIV } from './beehiiv.ts';
import { BRAZE } from './braze.ts';
import { BREVO } from './brevo.ts';
import { DISCORD, MICROSOFT_TEAMS, TELEGRAM } from './chats.ts';
import { CLICKUP } from './clickup.ts';
import { REDDIT_CONVERSIONS, SNAPCHAT_ADS } from './conversions.ts';
import { CUSTOMERIO } from './customerio.ts';
import { DOWNSAMPLING, DOWNSAMPLING_PLUGIN } from './downsampling.ts';
import { DROP_EVENTS } from './drop-events.ts';
import { GLEAP } from './gleap.ts';
import { GOOGLE_ADS } from './google-ads.ts';
import { HUBSPOT, HUBSPOT_COMPANY, HUBSPOT_EVENT } from './hubspot.ts';
import { INCOMING_WEBHOOK } from './incoming-webhook.ts';
import { INTERCOM, INTERCOM_EVENT } from './intercom.ts';
import { GITHUB, GITLAB, LINEAR } from './issues.ts';
import { KINESIS } from './kinesis.ts';
import { KLAVIYO_EVENT, KLAVIYO_USER } from './klaviyo.ts';
import { LOOPS, LOOPS_EVENT } from './loops.ts';
import { MAILGUN } from './mailgun.ts';
import { MAILJET_CONTACT, MAILJET_LIST } from './mailjet.ts';
import { ENGAGE, KNOCK, KUDOSITY, ONESIGNAL } from './messaging.ts';
import { NOTIFICATION_BAR } from './notification-bar.ts';
import { PAGERDUTY } from './pagerduty.ts';
import { TWILIO, WHATSAPP } from './phones.ts';
import { GOOGLE_TAG_MANAGER, REDDIT_PIXEL, SNAPCHAT_PIXEL } from './pixels.ts';
import { FILTER_OUT, GEOIP_PLUGIN, LANGUAGE_OF_URL, URL_PARAMETERS } from './plugins.ts';
import { FILTER_PROPERTIES, HASH_PROPERTIES, PII_HASHING } from './properties.ts';
import { SALESFORCE_CREATE, SALESFORCE_UPDATE } from './salesforce.ts';
import { SENDGRID } from './sendgrid.ts';
import { BLANK_SITE_APP, BLANK_SITE_DESTINATION } from './sites.ts';
import { SLACK } from './slack.ts';
import type { Template } from './template.ts';
import { TIKTOK_PIXEL } from './tiktok-pixel.ts';
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
import { ZENDESK } from './zendesk.ts';

/** All templates. A further one is a file and a line here. */
export const TEMPLATES: readonly Template[] = [
  ...[WEBHOOK, INCOMING_WEBHOOK],
  ...[SLACK, DISCORD, MICROSOFT_TEAMS, TELEGRAM],
  ...[ZAPIER, MAKE, REPLICATOR, KINESIS],
  ...[LINEAR, GITHUB, GITLAB, CLICKUP, PAGERDUTY],
  ...[TWILIO, WHATSAPP, KUDOSITY, ONESIGNAL, KNOCK],
  ...[CUSTOMERIO, HUBSPOT, HUBSPOT_COMPANY, HUBSPOT_EVENT, SENDGRID, BREVO, LOOPS, LOOPS_EVENT],
  ...[KLAVIYO_USER, KLAVIYO_EVENT, BRAZE, USERLIST, ENGAGE, ACTIVECAMPAIGN, BEEHIIV],
  ...[MAILGUN, MAILJET_CONTACT, MAILJET_LIST],
  ...[INTERCOM, INTERCOM_EVENT, ZENDESK, GLEAP],
  ...[GOOGLE_ADS, META_ADS, TIKTOK_ADS, SNAPCHAT_ADS, REDDIT_CONVERSIONS],
  ...[RUDDERSTACK, AVO, CLEARBIT, APPCUES, ACCOIL, KLIME],
  ...[SALESFORCE_CREATE, SALESFORCE_UPDATE, ATTIO, AIRTABLE],
  ...[BLANK_TRANSFORMATION, DROP_EVENTS, GEOIP, IP_ANONYMIZATION, REMOVE_NULL_PROPERTIES, BOT_DETECTION],
  ...[FILTER_PROPERTIES, HASH_PROPERTIES, PII_HASHING],
  ...[DOWNSAMPLING, DOWNSAMPLING_PLUGIN],
  ...[URL_MASKING, URL_NORMALIZATION],
  ...[LANGUAGE_OF_URL, URL_PARAMETERS, FILTER_OUT, GEOIP_PLUGIN],
  ...[BLANK_SITE_APP, BLANK_SITE_DESTINATION, NOTIFICATION_BAR],
  ...[TIKTOK_PIXEL, SNAPCHAT_PIXEL, REDDIT_PIXEL, GOOGLE_TAG_MANAGER],
];

const byId = new Map(TEMPLATES.map((one) => [one.id, one]));

export const findTemplate = (id: string): Template | undefined => byId.get(id);
