/**
 * The status as text: replicas, then one line for each subject, then what someone has to look at: each finding
 * is a line that names an object, or where to look next.
 */
import { formatDuration } from '../../src/names/quantity.ts';
import { describeProblem, type Problem } from '../../src/policy/configuration/layer.ts';
import type { Installation } from '../installation/installation.ts';
import {
  agentProblems,
  configurationProblems,
  daemonSetProblems,
  emptyDeployments,
  troubles,
} from '../installation/problems.ts';
import { cell, counted, nothing, table, tableOf, type Column } from '../program/table.ts';
import type { Status } from './collect.ts';

const unknown = 'not known';

/** @param now wall clock, milliseconds */
export function describeStatus(status: Status, findings: readonly string[], now: number): string {
  return [
    tableOf(replicaColumns, status.replicas),
    table(subjects(status, now)),
    section('Look at', findings),
    section('Could not be read', status.unread),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${title}:\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

const replicaColumns: readonly Column<Status['replicas'][number]>[] = [
  ['REPLICA', ({ name }) => cell(name)],
  ['NODE', ({ node }) => cell(node)],
  ['VERSION', ({ version }) => cell(version)],
  ['READY', ({ ready }) => (ready ? 'yes' : 'no')],
  ['LEADS', ({ leads }) => (leads ? 'yes' : nothing)],
  [
    'CONFIGURATION',
    ({ configuration, inForce }) =>
      configuration === undefined ? unknown : `${configuration}${inForce === false ? ' (old)' : ''}`,
  ],
];

function subjects(status: Status, now: number): readonly (readonly [name: string, text: string])[] {
  const { webhooks, agents, nodes, gated, taints, misplacedPods, brokenImages } = status;
  const { credentialProblems, programErrors, dockerHub } = status;
  const { state = unknown, registered, failurePolicies } = webhooks;
  const policies = failurePolicies.length === 0 ? '' : `, failurePolicy ${failurePolicies.join(' and ')}`;
  const count = registered === undefined ? '' : `, ${registered} registered`;
  return [
    ['webhooks', `${state}${count}${policies}`],
    ['certificates', certificates(status, now)],
    ['nodes', nodes === undefined ? unknown : String(nodes)],
    ...agents.map(({ daemonSet, pool, wanted, ready }) => {
      const where = pool === undefined ? '' : `, pool ${cell(pool)}`;
      return ['agents', `${ready} of ${wanted} ready (${cell(daemonSet)}${where})`] as const;
    }),
    ...lines('gated pods', gatedTexts(gated)),
    ...(gated.oldest ?? []).map(
      ({ pod, since }) => ['', `${cell(pod)} since ${rounded(now - (Date.parse(since) || now))}`] as const,
    ),
    ['taints', taintsText(taints)],
    ['misplaced pods', misplacedPods === undefined ? unknown : String(misplacedPods)],
    ...lines(
      'broken images',
      brokenImages?.map(
        ({ image, architecture, until }) => `${cell(image)} on ${architecture}, until ${until}`,
      ),
    ),
    ['credentials', credentialsText(credentialProblems)],
    ...(programErrors ? [['program errors', programErrorsText(programErrors)] as const] : []),
    ...(dockerHub
      ? [['docker hub', `${dockerHub.remaining} of ${dockerHub.limit} requests left`] as const]
      : []),
  ];
}

function taintsText({ heldBackBy }: Status['taints']): string {
  if (heldBackBy === undefined) return unknown;
  const held = Object.entries(heldBackBy).map(([reason, pods]) => `${reason} (${pods})`);
  return held.length === 0 ? 'none held back' : `held back: ${held.join(', ')}`;
}

function programErrorsText({ containers, nodes }: NonNullable<Status['programErrors']>): string {
  const { on = 0, ...others } = nodes;
  const not = Object.entries(others).map(([reason, count]) => `, not on ${count} (${reason})`);
  return `in ${counted(containers, 'container')}; traced on ${counted(on, 'node')}${not.join('')}`;
}

function credentialsText(problems: Status['credentialProblems']): string {
  if (problems === undefined) return unknown;
  return problems.length === 0 ? 'no problem known' : counted(problems.length, 'problem');
}

/** Reasons are known to the leader only. */
function gatedTexts({ byReason, oldest }: Status['gated']): readonly string[] | undefined {
  if (byReason.length === 0 && oldest === undefined) return undefined;
  if (byReason.length === 0 && oldest && oldest.length > 0) return ['reasons not known'];
  return byReason.map(({ reason, age, pods }) => {
    const duration = age === 'older' ? 'more than 5m' : `less than ${age}`;
    return `${pods} ${reason}, for ${duration}`;
  });
}

/** @param texts `undefined`: not known */
function lines(name: string, texts: readonly string[] | undefined): readonly (readonly [string, string])[] {
  if (texts === undefined) return [[name, unknown]];
  if (texts.length === 0) return [[name, 'none']];
  return texts.map((text, index) => [index === 0 ? name : '', text]);
}

function certificates({ certificates: all }: Status, now: number): string {
  const [first] = all.toSorted((a, b) => (a.expires < b.expires ? -1 : 1));
  if (first === undefined) return unknown;
  const left = Date.parse(first.expires) - now;
  const when = left > 0 ? `expires in ${rounded(left)}` : `expired ${rounded(-left)} ago`;
  return `the first ${when} (${first.replica}, ${first.use})`;
}

const units = [86_400_000, 3_600_000, 60_000, 1000];

/** Rounds down to the largest unit. Clocks differ: less than nothing is nothing. */
function rounded(ms: number): string {
  const unit = units.find((each) => ms >= each) ?? 1000;
  return formatDuration(Math.max(0, Math.floor(ms / unit)) * unit);
}

/** Certificates are replaced after two thirds of their life. */
const expiresSoonMs = 7 * 86_400_000;
/** The alert ArchwrightDockerHubLimitLow has the same share. */
const lowShare = 0.1;
const notListed = 'whether archwright works is not known: you may not list its pods';

const consequence = 'running replicas keep their last configuration, but restarted ones do not start';

/** @param problems of the configuration in the cluster */
export function findingsOf(
  status: Status,
  installation: Installation,
  problems: readonly Problem[],
  now: number,
): readonly string[] {
  const { namespace, certificates, gated, taints, misplacedPods, credentialProblems, dockerHub } = status;
  const mayList = !status.unread.some((each) => each.startsWith('pods:'));
  const { replicas, deployments, daemonSets } = installation;
  if (mayList && replicas.length + deployments.length + daemonSets.length === 0)
    return [
      `archwright does not run in the namespace ${namespace}; is it installed? --namespace sets another one`,
    ];
  const soon = certificates.filter(({ expires }) => Date.parse(expires) - now < expiresSoonMs);
  const late = gated.byReason.filter(({ age }) => age === 'older');
  return [
    ...(mayList ? emptyDeployments(installation) : [`${notListed} in the namespace ${namespace}`]),
    ...troubles(replicas),
    ...problems.map((problem) => `${describeProblem(problem)}; ${consequence}`),
    ...configurationProblems(installation),
    ...agentFindings(installation),
    ...webhookFindings(status),
    ...soon.map(({ replica, use, expires }) => {
      const text = `${replica}: its ${use} certificate`;
      if (Date.parse(expires) > now) return `${text} expires at ${expires}`;
      return `${text} expired at ${expires}; does a controller lead, and is its clock right?`;
    }),
    ...late.map(({ reason, pods }) => {
      const why =
        reason === 'refused'
          ? 'the API server refuses to change them; their events name the cause'
          : `${reason}; archwright explain names the cause`;
      return `${counted(pods, 'pod')} gated for more than five minutes: ${why}`;
    }),
    ...Object.entries(taints.heldBackBy ?? {}).map(
      ([reason, count]) =>
        `taints are held back: ${reason} (${count}): kubectl get events -A | grep TaintHeldBack`,
    ),
    ...(misplacedPods
      ? [`${counted(misplacedPods, 'misplaced pod')}: kubectl get events -A | grep MisplacedPod`]
      : []),
    ...(credentialProblems ?? []),
    ...(dockerHub && dockerHub.remaining < dockerHub.limit * lowShare
      ? [
          `Docker Hub allows a node only ${counted(dockerHub.remaining, 'more request')}: set credentials with a higher limit (registryCredentials), or a mirror (proxies)`,
        ]
      : []),
  ];
}

function webhookFindings({ webhooks, replicas }: Status): readonly string[] {
  const { state, registered, failurePolicies } = webhooks;
  const all = replicas.filter(({ part }) => part === 'webhook');
  const effect = failurePolicies.includes('Fail') ? 'new pods are refused' : 'new pods get no placement';
  const found: string[] = [];
  if (all.length > 0 && !all.some(({ ready }) => ready)) found.push(`no webhook is ready: ${effect}`);
  // The controller never creates it.
  if (state === 'missing')
    found.push('the MutatingWebhookConfiguration was deleted, so pods get no placement: run helm upgrade');
  else if (registered === 0)
    found.push(
      'the MutatingWebhookConfiguration has no webhooks, so new pods get no placement: the leader adds them; see its log',
    );
  else if (state !== undefined && state !== 'in-force')
    found.push(`the webhook configuration is not in force: ${state}; see the log of the leader`);
  return found;
}

/** Agents that are not ready count even if others answer. */
function agentFindings(installation: Installation): readonly string[] {
  const none = agentProblems(installation);
  return none.length > 0
    ? none
    : installation.daemonSets.flatMap((each) => daemonSetProblems(each, installation));
}
