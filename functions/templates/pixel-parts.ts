// Parts of templates for scripts of advertisers.
import { dictionary, text } from './inputs.ts';
import { site, type Written } from './parts.ts';
import type { Template } from './template.ts';

/** Functions of programs: they load a script beside the page, and leave out what is empty. */
export const COMMON = `function loadScript(url) {
  const script = document.createElement('script')
  script.async = true
  script.src = url
  document.head.append(script)
}
function filled(...given) {
  const entries = given.flatMap((one) => Object.entries(one ?? {}))
  return Object.fromEntries(entries.filter(([, value]) => value !== null && value !== undefined && value !== ''))
}
`;

export const pixel = (icon: string, given: Written): Template => ({
  ...site('site_destination', given, icon),
  status: 'beta',
});

export const pixelId = (service: string) =>
  text('pixelId', 'Pixel ID', {
    description: `The ID of your pixel at ${service}. Use the one that your server sends its events to, if there is one.`,
    required: true,
  });
export const userProperties = (service: string, value: Record<string, string>, more = '') =>
  dictionary('userProperties', 'About the person', {
    description: `What ${service} learns about the person. Empty values are left out.${more}`,
    default: value,
  });
export const eventProperties = (service: string, value: Record<string, string>) =>
  dictionary('eventProperties', 'About the event', {
    description: `What ${service} learns about the event. Empty values are left out.`,
    default: value,
  });
