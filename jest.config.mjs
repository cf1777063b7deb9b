// The sources are TypeScript modules that Node runs directly. Jest strips the types in the same way.
export default {
  testEnvironment: process.env.TEST_TIMES ? '<rootDir>/test/support/measured-environment.ts' : 'node',
  testSequencer: '<rootDir>/test/support/longest-first.ts',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': [
      '@swc/jest',
      {
        jsc: { target: 'es2024', parser: { syntax: 'typescript' } },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
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
