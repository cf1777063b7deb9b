// What `npm test -- --ci` makes of jest's report when a few files failed: see `runsAgain`.

/** The part of jest's JSON report that is read and put together here. */
export interface TestReport {
  success: boolean;
  numFailedTestSuites: number;
  numFailedTests: number;
  numPassedTestSuites: number;
  numPassedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  numRuntimeErrorTestSuites: number;
  numTotalTests: number;
  testResults: FileReport[];
}

interface FileReport {
  /** The path of the file. */
  name: string;
  status: string;
  /** What failed, as text. Empty if nothing did. */
  message: string;
  assertionResults: { status: string; fullName: string }[];
}

/** More failed files than this are no accident. */
const MOST_FILES = 3;
/** fast-check begins its message so. A counterexample stays one, whatever the machine does. */
const COUNTEREXAMPLE = 'Property failed after';

/**
 * Returns the files that run once more, alone, before the run counts as failed. A shared machine can stand still for
 * longer than a test allows. Returns none if many files failed, or if one of them found a counterexample.
 */
export function runsAgain({ testResults }: TestReport): string[] {
  const failed = testResults.filter((file) => file.status === 'failed');
  if (failed.length > MOST_FILES || failed.some((file) => file.message.includes(COUNTEREXAMPLE))) return [];
  return failed.map((file) => file.name);
}

/** Puts the results of the files that ran again in the place of their first ones. Changes no other file's results. */
export function withSecondRun(first: TestReport, second: TestReport): TestReport {
  const again = new Map(second.testResults.map((file) => [file.name, file]));
  const replaced = first.testResults.filter((file) => again.has(file.name));
  const count = (status: string) =>
    replaced.flatMap((file) => file.assertionResults).filter((test) => test.status === status).length;
  // A file that could not be read as a test has failed without a result of any test.
  const unread = replaced.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  return {
    ...first,
    success: first.numFailedTestSuites === replaced.length && second.success,
    numFailedTestSuites: first.numFailedTestSuites - replaced.length + second.numFailedTestSuites,
    numFailedTests: first.numFailedTests - count('failed') + second.numFailedTests,
    numPassedTestSuites: first.numPassedTestSuites + second.numPassedTestSuites,
    numPassedTests: first.numPassedTests - count('passed') + second.numPassedTests,
    numPendingTests: first.numPendingTests - count('pending') + second.numPendingTests,
    numTodoTests: first.numTodoTests - count('todo') + second.numTodoTests,
    numRuntimeErrorTestSuites:
      first.numRuntimeErrorTestSuites - unread.length + second.numRuntimeErrorTestSuites,
    numTotalTests:
      first.numTotalTests + second.numTotalTests - replaced.flatMap((f) => f.assertionResults).length,
    testResults: first.testResults.map((file) => again.get(file.name) ?? file),
  };
}

/** Lists the tests that failed first and passed then. */
export function passedLater(first: TestReport, second: TestReport): string[] {
  const failed = new Set(namesOf(first, 'failed'));
  return namesOf(second, 'passed').filter((name) => failed.has(name));
}

function namesOf(report: TestReport, status: string): string[] {
  return report.testResults.flatMap((file) =>
    file.assertionResults
      .filter((test) => test.status === status)
      .map((test) => `${file.name}: ${test.fullName}`),
  );
}
