/** Rollouts as text: a line for each, or one of them with its workloads. */
import type { RolloutStatus } from '../../src/controller/features/rollouts/status.ts';
import type { KubeObject } from '../../src/kube/api/objects.ts';
import { formatDuration } from '../../src/names/duration.ts';
import { printable } from '../../src/names/printable.ts';
import { cell, nothing, table } from '../program/table.ts';

export interface StoredRollout extends KubeObject {
  readonly spec?: { readonly architecture?: string; readonly aborted?: boolean };
  readonly status?: Partial<RolloutStatus>;
}

const barWidth = 30;
const notFollowed = 'no controller follows it so far: see archwright status, and the setting rollouts';

/** Whether the status is that of the present spec. */
export function isSeen({ metadata, status }: StoredRollout): boolean {
  return status?.observedGeneration === undefined || status.observedGeneration === metadata?.generation;
}

export function describeRollouts(rollouts: readonly StoredRollout[], namespace: string): string {
  if (rollouts.length === 0) return `no rollouts in namespace ${namespace}\n`;
  const head = ['NAME', 'ARCHITECTURE', 'PHASE', 'TARGET', 'MOVED', 'MESSAGE'];
  const rows = rollouts.map(({ metadata, spec, status = {} }) => [
    cell(metadata?.name ?? ''),
    cell(spec?.architecture ?? ''),
    cell(status.phase ?? ''),
    cell(status.share ?? ''),
    moved(status),
    cell(status.message ?? notFollowed),
  ]);
  return table([head, ...rows]);
}

/** @param now wall clock, milliseconds */
export function describeRollout(rollout: StoredRollout, now: number): string {
  const { metadata, spec, status } = rollout;
  const name = cell(metadata?.name ?? '');
  if (status?.phase === undefined) return `${name}: ${printable(status?.message ?? notFollowed, 1024)}\n`;
  const { phase, share = '', attempt = 1, message = '', retryAt, workloads = [] } = status;
  const lines = [
    ['rollout', `${name} to ${cell(spec?.architecture ?? '')}`],
    ['phase', `${cell(phase)}, target ${cell(share)}, attempt ${attempt}`],
    ['moved', `${bar(status)} ${moved(status)}`],
    [
      'message',
      isSeen(rollout) ? printable(message, 1024) : 'the controller has not seen the last change yet',
    ],
    ...(retryAt === undefined ? [] : [['retry', inTime(retryAt, now)]]),
  ];
  const head = ['WORKLOAD', 'PODS', 'MOVED', 'READY', 'WANTED', 'REASON'];
  const rows = workloads.map(({ name: workload, pods, moved: there, ready, wanted, blocked }) => [
    cell(workload),
    ...[pods, there, ready, wanted].map(String),
    blocked === undefined ? nothing : cell(blocked),
  ]);
  return `${table(lines)}${rows.length === 0 ? '' : `\n${table([head, ...rows])}`}`;
}

function moved({ moved: there, pods }: NonNullable<StoredRollout['status']>): string {
  return there === undefined || pods === undefined ? nothing : `${there} of ${pods}`;
}

function bar({ moved: there = 0, pods = 0 }: NonNullable<StoredRollout['status']>): string {
  const full = pods === 0 ? 0 : Math.round((barWidth * Math.min(there, pods)) / pods);
  return `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}]`;
}

function inTime(time: string, now: number): string {
  const ms = Math.max(0, Date.parse(time) - now);
  return Number.isNaN(ms) ? nothing : `in ${formatDuration(Math.round(ms / 1000) * 1000)}`;
}
