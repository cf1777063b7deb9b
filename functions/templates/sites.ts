import { input, site } from './parts.ts';

export const BLANK_SITE_APP = site('site_app', {
  id: 'template-blank-site-app',
  name: 'Custom site app',
  description: 'Runs your own code in web pages.',
  category: ['Custom'],
  hog: `export function onLoad({ inputs, posthog }) {
  console.log('The site app is loaded.', inputs.name)
}
`,
  inputs_schema: [
    input({ key: 'name', label: 'Name', description: 'An example of an input.', default: 'Site app' }),
  ],
});

export const BLANK_SITE_DESTINATION = site('site_destination', {
  id: 'template-blank-site-destination',
  name: 'Custom site destination',
  description: 'Runs your own code in web pages, for each event that is captured there.',
  category: ['Custom'],
  hog: `export async function onLoad({ inputs, posthog }) {
  console.log('The site destination is loaded.', inputs.name)
}
export function onEvent({ inputs, event, person, posthog }) {
  console.log('An event was captured.', event.event, inputs.name)
}
`,
  inputs_schema: [
    input({ key: 'name', label: 'Name', description: 'An example of an input.', default: '{event.event}' }),
  ],
});
