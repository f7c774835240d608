/** `archwright rollout`: shows, pauses, resumes and aborts `ArchitectureRollout`s. */
import { isCode, type KubeError } from '../src/kube/api/errors.ts';
import type { KubeClient } from '../src/kube/api/client.ts';
import type { Page } from '../src/kube/api/pages.ts';
import { didYouMean } from '../src/names/suggestion.ts';
import { rolloutKind, rolloutsPath } from '../src/policy/resources/rollout.ts';
import { untilStopped } from './program/context.ts';
import { exitCodes, Failure, UsageError } from './program/exit.ts';
import { choice, text, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { cell, nothing, table, tableOf, type Column } from './program/table.ts';
import { showAgain } from './program/terminal.ts';
import { connect } from './wiring/cluster.ts';
import type { RolloutStatus } from '../src/controller/features/rollouts/status.ts';
import type { KubeObject } from '../src/kube/api/objects.ts';
import { formatDuration } from '../src/names/quantity.ts';
import { printable } from '../src/names/printable.ts';

/** What each word changes in the spec. */
const changes: Readonly<Record<string, (now: number) => object>> = {
  pause: () => ({ paused: true }),
  resume: (now) => ({ paused: false, aborted: false, resumedAt: new Date(now).toISOString() }),
  abort: () => ({ aborted: true }),
};
const actions = ['status', ...Object.keys(changes)];

const flags = {
  namespace: text('NAME', 'Namespace of the rollout. Default: the namespace of the kubeconfig context.', {
    short: 'n',
  }),
  watch: toggle(
    'Updates the output every two seconds, until the rollout is complete, rolled back or aborted.',
    { short: 'w' },
  ),
  output: choice(['table', 'json'], 'Output format.', { short: 'o' }),
};

type Call = Invocation<typeof flags>;

export const subcommand: Subcommand<typeof flags> = {
  usage: `${actions.join('|')} [FLAGS] [NAME]`,
  description:
    '`status` shows the rollouts of a namespace, or one rollout with its workloads and what blocks them. ' +
    '`pause` stays at the current step. `resume` continues, also after a rollback or an abort. `abort` ' +
    'moves all pods back. Exit code: 0, or 1 if the rollout was rolled back or aborted, or does not ' +
    'exist, 2 for wrong usage, 3 if the cluster does not answer.',
  settings: 'status',
  flags,
  run: untilStopped(run),
};

const ended: ReadonlySet<string | undefined> = new Set(['Complete', 'RolledBack', 'Aborted']);

async function run(invocation: Call): Promise<number> {
  const { positionals, say, stop: signal } = invocation;
  const [action, name, ...more] = positionals;
  if (action === undefined || !actions.includes(action))
    throw new UsageError(`name one of ${actions.join(', ')}${action ? didYouMean(action, actions) : ''}`);
  if (more.length > 0) throw new UsageError(`takes one rollout, not ${more.join(', ')} too`);
  if (action !== 'status' && name === undefined) throw new UsageError(`name the rollout to ${action}`);
  await using opened = new AsyncDisposableStack();
  const { client, access } = (await connect(invocation, opened)).kubernetes;
  const namespace = invocation.flags.namespace ?? access.namespace;
  try {
    const change = changes[action];
    if (change && name !== undefined) {
      // The first answer has the server's time, by which the controller compares.
      const [before] = await read(client, namespace, name, signal);
      const why = action === 'pause' ? withoutEffect(before, name) : undefined;
      if (why !== undefined) say(`${name} is ${why}`);
      const patch = { type: 'merge', body: { spec: change(client.serverNow()) } } as const;
      await client.patch(rolloutsPath(namespace, name), patch, { signal });
    }
    const code = await showAgain(invocation, async () => {
      const all = await read(client, namespace, name, signal);
      const [one] = all;
      const isOne = name !== undefined && one !== undefined;
      const text = isOne ? describeRollout(one, client.serverNow()) : describeRollouts(all, namespace);
      const phases = all.map((each) => (isSeen(each) ? each.status?.phase : undefined));
      const isBack = phases.some((phase) => phase === 'RolledBack' || phase === 'Aborted');
      const isOver = phases.every((phase) => ended.has(phase));
      const code = isBack ? exitCodes.failure : exitCodes.success;
      return { document: isOne ? one : all, text, code, isOver };
    });
    return action === 'abort' ? exitCodes.success : code;
  } catch (error) {
    signal.throwIfAborted();
    if (!isCode(error, 'not-found', 'forbidden')) throw error;
    throw new Failure(messageFor(error, namespace, name));
  }
}

function messageFor(error: KubeError, namespace: string, name: string | undefined): string {
  if (error.code !== 'not-found') return error.message;
  if (name === undefined || !error.message.includes(`"${name}" not found`))
    return `the cluster has no ${rolloutKind}s: is archwright installed there? ${error.message}`;
  return `there is no ${rolloutKind} ${name} in the namespace ${namespace}; archwright rollout status -n NAMESPACE lists them`;
}

/** Why a pause changes nothing; `undefined`: it does. */
function withoutEffect(rollout: StoredRollout | undefined, name: string): string | undefined {
  if (rollout?.spec?.aborted === true)
    return `aborted, so pause has no effect; to begin again: archwright rollout resume ${name}`;
  if (rollout && isSeen(rollout) && rollout.status?.phase === 'Complete')
    return `complete, so pause has no effect until it gets another step; to move pods back: archwright rollout abort ${name}`;
  return undefined;
}

async function read(
  client: KubeClient,
  namespace: string,
  name: string | undefined,
  signal: AbortSignal,
): Promise<readonly StoredRollout[]> {
  if (name !== undefined) return [await client.get<StoredRollout>(rolloutsPath(namespace, name), { signal })];
  const { items } = await client.get<Page<StoredRollout>>(rolloutsPath(namespace), { signal });
  return (items ?? []).map((item) => ({ kind: rolloutKind, ...item }));
}

interface StoredRollout extends KubeObject {
  readonly spec?: { readonly architecture?: string; readonly aborted?: boolean };
  readonly status?: Partial<RolloutStatus>;
}

const barWidth = 30;
const notFollowed = 'no controller follows it so far: see archwright status, and the setting rollouts';

/** Whether the status is that of the present spec. */
function isSeen({ metadata, status }: StoredRollout): boolean {
  return status?.observedGeneration === undefined || status.observedGeneration === metadata?.generation;
}

function describeRollouts(rollouts: readonly StoredRollout[], namespace: string): string {
  if (rollouts.length === 0) return `no rollouts in namespace ${namespace}\n`;
  return tableOf(rolloutColumns, rollouts);
}

const rolloutColumns: readonly Column<StoredRollout>[] = [
  ['NAME', ({ metadata }) => cell(metadata?.name)],
  ['ARCHITECTURE', ({ spec }) => cell(spec?.architecture)],
  ['PHASE', ({ status }) => cell(status?.phase)],
  ['TARGET', ({ status }) => cell(status?.share)],
  ['MOVED', ({ status = {} }) => moved(status)],
  ['MESSAGE', ({ status }) => cell(status?.message ?? notFollowed)],
];

const workloadColumns: readonly Column<RolloutStatus['workloads'][number]>[] = [
  ['WORKLOAD', ({ name }) => cell(name)],
  ['PODS', ({ pods }) => pods],
  ['MOVED', ({ moved }) => moved],
  ['READY', ({ ready }) => ready],
  ['WANTED', ({ wanted }) => wanted],
  ['REASON', ({ blocked }) => cell(blocked)],
];

/** @param now wall clock, milliseconds */
function describeRollout(rollout: StoredRollout, now: number): string {
  const { metadata, spec, status } = rollout;
  const name = cell(metadata?.name);
  if (status?.phase === undefined) return `${name}: ${printable(status?.message ?? notFollowed, 1024)}\n`;
  const { phase, share = '', attempt = 1, message = '', retryAt, workloads = [] } = status;
  const lines = [
    ['rollout', `${name} to ${cell(spec?.architecture)}`],
    ['phase', `${cell(phase)}, target ${cell(share)}, attempt ${attempt}`],
    ['moved', `${bar(status)} ${moved(status)}`],
    [
      'message',
      isSeen(rollout) ? printable(message, 1024) : 'the controller has not seen the last change yet',
    ],
    ...(retryAt === undefined ? [] : [['retry', inTime(retryAt, now)]]),
  ];
  return `${table(lines)}${workloads.length === 0 ? '' : `\n${tableOf(workloadColumns, workloads)}`}`;
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
