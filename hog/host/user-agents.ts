import bowser from 'bowser';
import { isbot } from 'isbot';

/** Longer user agents are not real, and would take long to read. */
const LONGEST = 1_000;

const DEVICE_TYPES: Record<string, string> = {
  desktop: 'Desktop',
  mobile: 'Mobile',
  tablet: 'Tablet',
  tv: 'TV',
};

/** What a user agent says of itself. What it does not say is null. */
export interface UserAgent {
  browser: string | null;
  browser_version: string | null;
  os: string | null;
  os_version: string | null;
  device: string | null;
  device_type: string | null;
}

export function parseUserAgent(text: unknown): UserAgent {
  const isText = typeof text === 'string' && text.trim() !== '';
  const { browser, os, platform } = isText
    ? bowser.parse(text.slice(0, LONGEST))
    : { browser: {}, os: {}, platform: {} };
  return {
    browser: browser.name || null,
    browser_version: browser.version || null,
    os: os.name || null,
    os_version: os.version || null,
    device: platform.model || null,
    device_type: DEVICE_TYPES[platform.type ?? ''] ?? null,
  };
}

export const isKnownBotUserAgent = (text: unknown): boolean =>
  typeof text === 'string' && isbot(text.slice(0, LONGEST));
