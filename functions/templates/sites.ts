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

export const NOTIFICATION_BAR = site('site_app', {
  id: 'template-notification-bar',
  name: 'Notification bar',
  description: 'Shows a bar with a message at the top of web pages.',
  category: ['Custom'],
  hog: `const CLOSED = 'notification-bar-closed'

export function onLoad({ inputs, posthog }) {
  const message = String(inputs.notification ?? '')
  if (!message) return
  const isClosed = () => {
    // Pages may forbid storage.
    try { return localStorage.getItem(CLOSED) === message } catch { return false }
  }
  if (inputs.rememberClose && isClosed()) return
  // Styles of the page do not reach into a shadow.
  const host = document.createElement('div')
  const shadow = host.attachShadow({ mode: 'open' })
  const bar = document.createElement('div')
  bar.setAttribute('role', 'status')
  bar.style.cssText = 'display: flex; justify-content: center; gap: 1em; padding: 0.75em; font: 16px sans-serif;'
  bar.style.backgroundColor = inputs.backgroundColor || '#ebece8'
  bar.style.color = inputs.textColor || '#111'
  const text = document.createElement('span')
  text.textContent = message
  bar.append(text)
  const url = String(inputs.linkUrl ?? '')
  if (/^(https?:\\/\\/|\\/(?!\\/))/i.test(url)) {
    const link = document.createElement('a')
    link.href = url
    link.textContent = String(inputs.linkText || url)
    link.style.color = 'inherit'
    bar.append(link)
  }
  const close = document.createElement('button')
  close.type = 'button'
  close.textContent = '×'
  close.setAttribute('aria-label', 'Close')
  close.style.cssText = 'border: 0; background: none; color: inherit; font: inherit; cursor: pointer;'
  close.addEventListener('click', () => {
    try { localStorage.setItem(CLOSED, message) } catch {}
    host.remove()
  })
  bar.append(close)
  shadow.append(bar)
  document.body.prepend(host)
}
`,
  inputs_schema: [
    input({
      key: 'notification',
      label: 'Message',
      description: 'The text of the bar.',
      required: true,
    }),
    input({ key: 'linkUrl', label: 'Link', description: 'Begins with https:// or a slash.' }),
    input({ key: 'linkText', label: 'Text of the link', default: 'Learn more' }),
    input({ key: 'backgroundColor', label: 'Color of the bar', default: '#ebece8' }),
    input({ key: 'textColor', label: 'Color of the text', default: '#111111' }),
    input({
      key: 'rememberClose',
      type: 'boolean',
      label: 'Stay closed',
      description: 'A visitor who closed the bar does not see the same message again.',
      default: true,
    }),
  ],
});
