// What a page does with posthog-js, after the library's script: usePage(host, project key).
// biome-ignore lint/correctness/noUnusedVariables: called by the page that includes this file
function usePage(host, key, finished) {
  window.posthog.init(key, {
    api_host: host,
    autocapture: false,
    capture_pageview: true,
    disable_session_recording: true,
    disable_surveys: true,
    advanced_disable_feature_flags: true,
    opt_out_useragent_filter: true,
    persistence: 'memory',
    request_queue_config: { flush_interval_ms: 250 },
    loaded(posthog) {
      posthog.capture('looked', { price: 5 });
      posthog.identify('ann', { email: 'ann@example.com' }, { first: 1 });
      posthog.alias('annie', 'ann');
      posthog.group('company', 'acme', { seats: 5 });
      posthog.setPersonProperties({ plan: 'pro' });
      posthog.capture('at once', {}, { send_instantly: true });
      setTimeout(() => {
        // Still in the queue when the page is left: goes out as a beacon.
        posthog.capture('leaving');
        finished();
      }, 1_500);
    },
  });
}
