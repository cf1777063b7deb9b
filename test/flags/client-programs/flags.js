// What a page does with the flags of posthog-js: usePage(host, project key). It prints what it sees, step by step.
// biome-ignore lint/correctness/noUnusedVariables: called by the page that includes this file
function usePage(host, key, finished) {
  const seen = (step, posthog) => {
    const told = {
      step,
      keys: posthog.featureFlags.getFlags().length,
      variant: posthog.getFeatureFlag('new-checkout'),
      payload: posthog.getFeatureFlagPayload('new-checkout'),
      isOn: posthog.isFeatureEnabled('acme'),
      boot: posthog.getFeatureFlag('boot'),
    };
    // biome-ignore lint/suspicious/noConsole: this is how the page tells the test
    window.console.log(`RESULT ${JSON.stringify(told)}`);
  };
  window.posthog.init(key, {
    api_host: host,
    autocapture: false,
    capture_pageview: false,
    disable_session_recording: true,
    disable_surveys: true,
    opt_out_useragent_filter: true,
    persistence: 'memory',
    bootstrap: { distinctID: 'user-2', isIdentifiedID: false, featureFlags: { boot: true, acme: true } },
    loaded(posthog) {
      seen('bootstrap', posthog);
      let isKnown = false;
      posthog.onFeatureFlags(() => {
        const variant = posthog.getFeatureFlag('new-checkout');
        if (variant === 'test2' && !isKnown) {
          isKnown = true;
          seen('loaded', posthog);
          posthog.identify('user-3', { email: 'ann@acme.com' });
        }
        if (variant === 'control') {
          seen('known', posthog);
          finished();
        }
      });
      // Newer versions ask by themselves only if the page gave them no flags.
      posthog.reloadFeatureFlags();
    },
  });
}
