import { expect, test } from '@jest/globals';
import { passedLater, runsAgain, type TestReport, withSecondRun } from '../../scripts/test-report.ts';

type Outcome = 'passed' | 'failed' | 'pending';

/** A report of files, each with the outcomes of its tests. A file without any could not be read. */
function report(files: Record<string, Outcome[]>, message = 'expected 1'): TestReport {
  const outcomes = Object.values(files);
  const isFailed = (file: Outcome[]) => file.length === 0 || file.includes('failed');
  const count = (wanted: Outcome) => outcomes.flat().filter((one) => one === wanted).length;
  const failedFiles = outcomes.filter(isFailed).length;
  return {
    success: failedFiles === 0,
    numFailedTestSuites: failedFiles,
    numFailedTests: count('failed'),
    numPassedTestSuites: outcomes.length - failedFiles,
    numPassedTests: count('passed'),
    numPendingTests: count('pending'),
    numTodoTests: 0,
    numRuntimeErrorTestSuites: outcomes.filter((file) => file.length === 0).length,
    numTotalTests: outcomes.flat().length,
    testResults: Object.entries(files).map(([name, tests]) => ({
      name,
      status: isFailed(tests) ? 'failed' : 'passed',
      message: isFailed(tests) ? message : '',
      assertionResults: tests.map((status, n) => ({ status, fullName: `test ${n}` })),
    })),
  };
}

test('the files that failed run again, if they are few and nothing is proven against them', () => {
  expect(runsAgain(report({ a: ['passed'], b: ['failed', 'passed'], c: [] }))).toEqual(['b', 'c']);
  expect(runsAgain(report({ a: ['failed'], b: ['failed'], c: ['failed'] }))).toHaveLength(3);
  expect(runsAgain(report({ a: ['failed'], b: ['failed'], c: ['failed'], d: [] }))).toEqual([]);
  expect(runsAgain(report({ a: ['failed'] }, 'Error: Property failed after 3 tests'))).toEqual([]);
});

test('the second results of a file count instead of its first ones', () => {
  const first = report({ a: ['passed', 'pending'], b: ['failed', 'passed', 'pending'], c: [] });
  const second = report({ b: ['passed', 'passed', 'pending'], c: ['passed'] });
  expect(withSecondRun(first, second)).toEqual(
    report({ a: ['passed', 'pending'], b: ['passed', 'passed', 'pending'], c: ['passed'] }),
  );
  expect(passedLater(first, second)).toEqual(['b: test 0']);
});

test('what fails again has failed', () => {
  const first = report({ a: ['passed'], b: ['failed', 'failed'], c: [] });
  const second = report({ b: ['passed', 'failed'], c: [] });
  expect(withSecondRun(first, second)).toEqual(report({ a: ['passed'], b: ['passed', 'failed'], c: [] }));
  expect(withSecondRun(first, second).success).toBe(false);
});
