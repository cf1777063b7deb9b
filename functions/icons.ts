// Pictures of services: a coloured square with the first letters of the name. They are our own and copy no logo.

/** A service, or a kind of function, that has a picture. */
export interface Icon {
  /** The name of its file. */
  name: string;
  title: string;
  /** The id under which people find it: the host of its site. Undefined: it is no service. */
  id: string | undefined;
  svg: string;
}

type Row = readonly [name: string, title: string, id: string | undefined, color: string, letters?: string];

/** A further picture is a line here. Templates name pictures by the first column. */
const ROWS: readonly Row[] = [
  // Kinds of functions.
  ['webhook', 'Webhook', undefined, '#3b4252'],
  ['source', 'Source', undefined, '#2e7d6b'],
  ['transformation', 'Transformation', undefined, '#6d4aa8'],
  ['site', 'Site app', undefined, '#0f6e84'],
  ['replicator', 'Replicator', undefined, '#1d4ed8'],
  ['email', 'Email', undefined, '#475569', '@'],
  // Services.
  ['accoil', 'Accoil', 'accoil.com', '#3a4fc9'],
  ['activecampaign', 'ActiveCampaign', 'activecampaign.com', '#2b5ad9', 'AC'],
  ['airtable', 'Airtable', 'airtable.com', '#d9a404'],
  ['amplitude', 'Amplitude', 'amplitude.com', '#1e61f0'],
  ['appcues', 'Appcues', 'appcues.com', '#5b4fe0'],
  ['attio', 'Attio', 'attio.com', '#22252b'],
  ['avo', 'Avo', 'avo.app', '#6f3fd1'],
  ['aws', 'Amazon Web Services', 'aws.amazon.com', '#28323f', 'AW'],
  ['aws-kinesis', 'Amazon Kinesis', 'kinesis.amazonaws.com', '#7a3fd0', 'AK'],
  ['beehiiv', 'beehiiv', 'beehiiv.com', '#d88a0c'],
  ['bigquery', 'BigQuery', 'cloud.google.com', '#3f74d1', 'BQ'],
  ['braze', 'Braze', 'braze.com', '#6b21c8'],
  ['brevo', 'Brevo', 'brevo.com', '#0f8a54'],
  ['clearbit', 'Clearbit', 'clearbit.com', '#3b8cf0'],
  ['clickup', 'ClickUp', 'clickup.com', '#6a55e0', 'CU'],
  ['customerio', 'Customer.io', 'customer.io', '#1f5f57', 'C.'],
  ['discord', 'Discord', 'discord.com', '#5058d6'],
  ['engage', 'Engage', 'engage.so', '#1262d4'],
  ['github', 'GitHub', 'github.com', '#24292f', 'GH'],
  ['gitlab', 'GitLab', 'gitlab.com', '#d9531e', 'GL'],
  ['gleap', 'Gleap', 'gleap.io', '#3a55e8'],
  ['google', 'Google', 'google.com', '#3d7be0'],
  ['google-ads', 'Google Ads', 'ads.google.com', '#3579dd'],
  ['google-cloud', 'Google Cloud', 'console.cloud.google.com', '#2f6fd6'],
  ['google-cloud-storage', 'Google Cloud Storage', 'storage.googleapis.com', '#3a76d8', 'GS'],
  ['google-pubsub', 'Google Pub/Sub', 'pubsub.googleapis.com', '#2c66c4', 'GP'],
  ['google-sheets', 'Google Sheets', 'sheets.google.com', '#1d8a4b', 'GS'],
  ['google-tag-manager', 'Google Tag Manager', 'tagmanager.google.com', '#3a6fe0', 'GT'],
  ['hubspot', 'HubSpot', 'hubspot.com', '#d9532d', 'HS'],
  ['intercom', 'Intercom', 'intercom.com', '#1a68d6'],
  ['june', 'June', 'june.so', '#6f4ad6'],
  ['klaviyo', 'Klaviyo', 'klaviyo.com', '#23211f'],
  ['klime', 'Klime', 'klime.com', '#2a7f9e'],
  ['knock', 'Knock', 'knock.app', '#d3502c'],
  ['kudosity', 'Kudosity', 'kudosity.com', '#7a2dd1'],
  ['linear', 'Linear', 'linear.app', '#4c57c2'],
  ['linkedin', 'LinkedIn', 'linkedin.com', '#1566b8', 'LI'],
  ['loops', 'Loops', 'loops.so', '#d4501f'],
  ['mailchimp', 'Mailchimp', 'mailchimp.com', '#d9b40a'],
  ['mailgun', 'Mailgun', 'mailgun.com', '#c22a38'],
  ['mailjet', 'Mailjet', 'mailjet.com', '#8a3fd6'],
  ['make', 'Make', 'make.com', '#7a1fc2'],
  ['meta', 'Meta', 'meta.com', '#1768d8'],
  ['meta-ads', 'Meta Ads', 'ads.meta.com', '#1768d8'],
  ['microsoft-ads', 'Microsoft Advertising', 'ads.microsoft.com', '#1a7a8c'],
  ['microsoft-teams', 'Microsoft Teams', 'teams.microsoft.com', '#4a50b0'],
  ['mixpanel', 'Mixpanel', 'mixpanel.com', '#6d4fe0'],
  ['notion', 'Notion', 'notion.so', '#2b2a28'],
  ['onesignal', 'OneSignal', 'onesignal.com', '#d63f45', 'OS'],
  ['opsgenie', 'Opsgenie', 'opsgenie.com', '#2a5fd0'],
  ['pagerduty', 'PagerDuty', 'pagerduty.com', '#15904a', 'PD'],
  ['postgres', 'PostgreSQL', 'postgresql.org', '#33628f', 'PG'],
  ['posthog', 'PostHog', 'posthog.com', '#d0481f', 'PH'],
  ['postmark', 'Postmark', 'postmarkapp.com', '#c99a06'],
  ['reddit', 'Reddit', 'reddit.com', '#d94a12'],
  ['resend', 'Resend', 'resend.com', '#1c1c1e'],
  ['rudderstack', 'RudderStack', 'rudderstack.com', '#2d2a6b', 'RS'],
  ['s3', 'Amazon S3', 's3.amazonaws.com', '#3f7d2a', 'S3'],
  ['salesforce', 'Salesforce', 'salesforce.com', '#1487c9'],
  ['segment', 'Segment', 'segment.com', '#2f9a68'],
  ['sendgrid', 'SendGrid', 'sendgrid.com', '#1a7fd0', 'SG'],
  ['sentry', 'Sentry', 'sentry.io', '#3c2a52'],
  ['shopify', 'Shopify', 'shopify.com', '#5f8a2c'],
  ['slack', 'Slack', 'slack.com', '#5a2560'],
  ['snapchat', 'Snapchat', 'snapchat.com', '#d9c80a'],
  ['snowflake', 'Snowflake', 'snowflake.com', '#1f9acb'],
  ['stripe', 'Stripe', 'stripe.com', '#5a54e0'],
  ['telegram', 'Telegram', 'telegram.org', '#1f87c4'],
  ['tiktok', 'TikTok', 'tiktok.com', '#1d1d21', 'TT'],
  ['twilio', 'Twilio', 'twilio.com', '#cf2338'],
  ['userlist', 'Userlist', 'userlist.com', '#2f50d0'],
  ['vercel', 'Vercel', 'vercel.com', '#18181b'],
  ['whatsapp', 'WhatsApp', 'whatsapp.com', '#1a9a52', 'WA'],
  ['zapier', 'Zapier', 'zapier.com', '#d9501a'],
  ['zendesk', 'Zendesk', 'zendesk.com', '#14444a'],
];

/** The letters on the square: of the first two words, or the first two of the only word. */
function lettersOf(title: string): string {
  const [first = '', second] = title.split(/\s+/);
  return second ? `${first[0]}${second[0]}`.toUpperCase() : `${first[0]?.toUpperCase()}${first[1] ?? ''}`;
}

/** Answers whether dark letters are easier to read than white ones. */
function isLight(color: string): boolean {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150;
}

const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (one) => `&#${one.codePointAt(0)};`);

function drawn(title: string, color: string, letters: string): string {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64" role="img">` +
    `<title>${escaped(title)}</title><rect width="64" height="64" rx="14" fill="${color}"/>` +
    `<text x="32" y="42" text-anchor="middle" font-family="system-ui,sans-serif" font-size="28" font-weight="600" ` +
    `fill="${isLight(color) ? '#1c1917' : '#ffffff'}">${escaped(letters)}</text></svg>`
  );
}

/** All pictures. */
export const ICONS: readonly Icon[] = ROWS.map(([name, title, id, color, letters]) => ({
  ...{ name, title, id },
  svg: drawn(title, color, letters ?? lettersOf(title)),
}));

const byName = new Map(ICONS.map((one) => [one.name, one]));
const byId = new Map(ICONS.flatMap((one) => (one.id === undefined ? [] : [[one.id, one]])));

/** Finds the picture of a file. */
export const findIcon = (name: string): Icon | undefined => byName.get(name);
/** Finds the picture of a service by the host of its site. */
export const findServiceIcon = (id: string): Icon | undefined => byId.get(id);

const MOST_FOUND = 50;

/** Lists services whose title or host has a text. Those that begin with it come first. */
export function searchIcons(query: string): (Icon & { id: string })[] {
  const text = query.trim().toLowerCase();
  if (text === '') return [];
  const rank = ({ title, id }: Icon): number => {
    const places = [title.toLowerCase().indexOf(text), (id ?? '').indexOf(text)].filter((one) => one >= 0);
    return places.length === 0 ? -1 : Math.min(...places);
  };
  return ICONS.filter((one): one is Icon & { id: string } => one.id !== undefined && rank(one) >= 0)
    .toSorted((a, b) => Number(rank(a) > 0) - Number(rank(b) > 0) || (a.title < b.title ? -1 : 1))
    .slice(0, MOST_FOUND);
}
