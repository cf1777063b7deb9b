import { choice, text } from './inputs.ts';
import { site } from './parts.ts';

/** Builds the message anew out of the elements that are allowed. Nothing of the given HTML itself gets into the page. */
const CLEANED = `const ALLOWED = new Set([
  'A', 'B', 'STRONG', 'I', 'EM', 'U', 'S', 'SMALL', 'SPAN', 'BR', 'P', 'CODE', 'SUB', 'SUP',
])
// What people do not see as text.
const DROPPED = new Set(['SCRIPT', 'STYLE', 'TEMPLATE', 'IFRAME', 'OBJECT', 'NOSCRIPT', 'TEXTAREA', 'TITLE', 'SVG', 'MATH'])

function addressOf(link) {
  try {
    const url = new URL(link.getAttribute('href') ?? '', location.href)
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null
  } catch { return null }
}

function cleaned(from, to, linkColor) {
  for (const node of from.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) { to.append(node.data); continue }
    if (node.nodeType !== Node.ELEMENT_NODE || DROPPED.has(node.nodeName.toUpperCase())) continue
    if (!ALLOWED.has(node.nodeName)) { cleaned(node, to, linkColor); continue }
    const copy = document.createElement(node.nodeName)
    if (node.nodeName === 'A') {
      const url = addressOf(node)
      if (url && node.hasAttribute('href')) copy.href = url
      if (node.getAttribute('target') === '_blank') { copy.target = '_blank'; copy.rel = 'noopener' }
      copy.style.color = linkColor
    }
    cleaned(node, copy, linkColor)
    to.append(copy)
  }
}
`;

export const NOTIFICATION_BAR = site('site_app', {
  id: 'template-notification-bar',
  name: 'Notification bar',
  description: 'Shows a bar with a message at the top of web pages.',
  category: ['Custom'],
  hog: `const CLOSED = 'notification-bar-closed'
${CLEANED}
export function onLoad({ inputs }) {
  const domains = String(inputs.domains ?? '').split(',').map((one) => one.trim().toLowerCase()).filter(Boolean)
  if (domains.length > 0 && !domains.includes(location.hostname)) return
  const message = String(inputs.notification ?? '')
  if (!message) return
  const remembers = inputs.rememberClose !== 'no'
  const isClosed = () => {
    // Pages may forbid storage.
    try { return localStorage.getItem(CLOSED) === message } catch { return false }
  }
  if (remembers && isClosed()) return
  // Styles of the page do not reach into a shadow.
  const host = document.createElement('div')
  if (inputs.position !== 'top-of-page') {
    host.style.cssText = 'position: sticky; top: 0; z-index: 2147483000;'
  }
  const bar = document.createElement('div')
  bar.setAttribute('role', 'status')
  bar.style.cssText = 'display: flex; justify-content: center; gap: 1em; padding: 0.75em; font: 16px sans-serif;'
  bar.style.backgroundColor = inputs.backgroundColor || '#ebece8'
  bar.style.color = inputs.textColor || '#333'
  const text = document.createElement('div')
  cleaned(new DOMParser().parseFromString(message, 'text/html').body, text, inputs.linkColor || '#f64e00')
  const close = document.createElement('button')
  close.type = 'button'
  close.textContent = '×'
  close.setAttribute('aria-label', 'Close')
  close.style.cssText = 'border: 0; background: none; color: inherit; font: inherit; cursor: pointer;'
  close.addEventListener('click', () => {
    if (remembers) try { localStorage.setItem(CLOSED, message) } catch {}
    host.remove()
  })
  bar.append(text, close)
  host.attachShadow({ mode: 'open' }).append(bar)
  document.body.prepend(host)
}
`,
  inputs_schema: [
    text('domains', 'Domains', {
      description: 'Host names of the pages that show the bar, with commas between them. Empty: all pages.',
      default: '',
    }),
    text('notification', 'Message', {
      description:
        'HTML. Links and simple marks such as <b> and <i> are shown as such, of all else only the text remains.',
      required: true,
    }),
    choice(
      'position',
      'Position',
      { sticky: 'Stays in view', 'top-of-page': 'At the top of the page' },
      {
        required: false,
      },
    ),
    text('backgroundColor', 'Color of the bar', { default: '#ebece8' }),
    text('textColor', 'Color of the text', { default: '#333' }),
    text('linkColor', 'Color of links', { default: '#f64e00' }),
    choice(
      'rememberClose',
      'Stay closed',
      { yes: 'Yes', no: 'No' },
      {
        description: 'Whether a visitor who closed the bar sees the same message again.',
        required: false,
      },
    ),
  ],
});
