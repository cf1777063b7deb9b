// What a page does with posthog-js that may not store anything in the browser: usePage(host, project key).
// biome-ignore lint/correctness/noUnusedVariables: called by the page that includes this file
function usePage(host, key, finished) {
  window.posthog.init(key, {
    api_host: host,
    autocapture: false,
    capture_pageview: false,
    cookieless_mode: 'always',
    disable_session_recording: true,
    disable_surveys: true,
    advanced_disable_feature_flags: true,
    opt_out_useragent_filter: true,
    person_profiles: 'always',
    request_queue_config: { flush_interval_ms: 250 },
    loaded(posthog) {
      posthog.capture('looked');
      posthog.identify(window.user, { name: window.user });
      posthog.capture('bought');
      setTimeout(finished, 1_500);
    },
  });
}
