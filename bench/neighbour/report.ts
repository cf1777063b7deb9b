import type { Answers } from './http.ts';
import type { Lateness } from './loop-lag.ts';
import type { ProbeResult } from './probe.ts';

/** One measurement of the probe. */
export interface Phase {
  name: string;
  seconds: number;
  probe: ProbeResult;
  late: Lateness;
  /** The load of the machine at its end. */
  load: number;
  /** CPU seconds. */
  cpu: { api: number; postgres: number; harm: number };
  /** How the misbehaving one was answered. */
  harm: Answers;
}

const GOAL_RATIO = 3;
const GOAL_LATE = 100;

const at = (sorted: number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const p99 = ({ probe }: Phase) => at(probe.latencies, 0.99);

/** The answers of all kinds by status. */
function byStatus(answers: Answers): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const statuses of Object.values(answers)) {
    for (const [status, count] of Object.entries(statuses)) sum[status] = (sum[status] ?? 0) + count;
  }
  return sum;
}

const told = (statuses: Record<string, number>) =>
  Object.entries(statuses)
    .map(([status, count]) => `${status}: ${count.toLocaleString('en')}`)
    .join(', ');
const isGood = (phase: Phase) =>
  Object.keys(byStatus(phase.probe.answers)).every((status) => /^2/.test(status));

/** The table for RESULTS.md, and which goals are met. The first phase is the yardstick. */
export function report(phases: Phase[]): { text: string; figures: object[] } {
  const alone = phases[0] as Phase;
  const lines = [
    '| phase | answers | p50 ms | p99 ms | × alone | most ms | loop late, most ms by clock / by CPU | seconds over 100 ms | sent late, most ms | CPU s API + Postgres + harm | load | answers to the harm |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
  ];
  for (const phase of phases) {
    const { probe, late, cpu, load } = phase;
    const { latencies } = probe;
    lines.push(
      `| ${phase.name} | ${told(byStatus(probe.answers))} | ${at(latencies, 0.5).toFixed(1)} | ${p99(phase).toFixed(0)} | ` +
        `${(p99(phase) / p99(alone)).toFixed(1)} | ${(latencies.at(-1) ?? Number.NaN).toFixed(0)} | ${late.clock.toFixed(0)} / ${late.cpu.toFixed(0)} | ` +
        `${late.lateSeconds} of ${phase.seconds} | ${probe.sentLate.toFixed(0)} | ` +
        `${cpu.api.toFixed(0)} + ${cpu.postgres.toFixed(0)} + ${cpu.harm.toFixed(0)} | ${load.toFixed(1)} | ` +
        `${told(byStatus(phase.harm))} |`,
    );
  }
  lines.push('', '| phase | p99 ms by kind |', '| --- | --- |');
  for (const { name, probe } of phases) {
    const kinds = Object.entries(probe.latenciesByKind).map(
      ([kind, latencies]) => `${kind} ${at(latencies, 0.99).toFixed(0)}`,
    );
    lines.push(`| ${name} | ${kinds.join(', ')} |`);
  }
  lines.push('');
  for (const [index, phase] of phases.entries()) {
    if (index === 0 || phase.name.startsWith('busy')) continue;
    const next = phases[index + 1];
    const busy = next?.name.startsWith('busy') ? next : undefined;
    const ratio = p99(phase) / p99(alone);
    const met = (isMet: boolean) => (isMet ? 'met' : 'MISSED');
    lines.push(
      `${met(isGood(phase))}: ${phase.name}: every answer is 2xx`,
      `${met(ratio <= GOAL_RATIO)}: ${phase.name}: p99 is ${ratio.toFixed(1)}× that of alone` +
        (busy ? `, ${(p99(phase) / p99(busy)).toFixed(1)}× that of a machine that is as full` : ''),
      `${met(phase.late.clock <= GOAL_LATE)}: ${phase.name}: the event loop is ${phase.late.clock.toFixed(0)} ms late at most` +
        (busy ? ` (${busy.late.clock.toFixed(0)} ms on a machine that is as full)` : '') +
        `, ${phase.late.cpu.toFixed(0)} ms of them by its own CPU time at most`,
    );
  }
  const figures = phases.map((phase) => ({
    ...{
      phase: phase.name,
      answers: phase.probe.answers,
      p50: at(phase.probe.latencies, 0.5),
      p99: p99(phase),
    },
    ...{ loopLate: phase.late, sentLate: phase.probe.sentLate, cpu: phase.cpu, load: phase.load },
    harm: phase.harm,
  }));
  return { text: lines.join('\n'), figures };
}
