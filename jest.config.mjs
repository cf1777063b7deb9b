// The sources are TypeScript modules. Node runs them directly, also in tests.
export default {
  testEnvironment: `<rootDir>/test/support/${process.env.TEST_TIMES ? 'measured' : 'native'}-environment.ts`,
  runtime: '<rootDir>/test/support/native-runtime.ts',
  testSequencer: '<rootDir>/test/support/longest-first.ts',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  transform: {},
  setupFilesAfterEnv: ['<rootDir>/test/support/every-file.ts'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  // Far more than any test takes, also where other programs keep the processors busy.
  testTimeout: 900_000,
  // Many tests wait for Temporal timers and other processes, so two cores can run four test files at once.
  maxWorkers: 4,
  // Modules of finished test files stay in the memory of a worker, so it is replaced before it is full.
  workerIdleMemoryLimit: '2GB',
};
