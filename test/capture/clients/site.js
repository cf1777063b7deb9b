// What a page does with posthog-js and the functions of the project: useSite(host, project key). The page's functions
// push what they see to `window.seen`.
// biome-ignore lint/correctness/noUnusedVariables: called by the page that includes this file
function useSite(host, key, finished) {
  window.seen = [];
  window.posthog.init(key, {
    api_host: host,
    opt_in_site_apps: true,
    autocapture: false,
    capture_pageview: false,
    capture_pageleave: false,
    disable_session_recording: true,
    disable_surveys: true,
    opt_out_useragent_filter: true,
    persistence: 'memory',
  });
  const look = setInterval(() => {
    if (!window._POSTHOG_REMOTE_CONFIG?.[key]) return;
    clearInterval(look);
    setTimeout(() => {
      window.posthog.capture('looked', { price: 1 });
      window.posthog.capture('bought', { price: 5 });
      setTimeout(() => finished(JSON.stringify(window.seen)), 200);
    }, 200);
  }, 20);
}
