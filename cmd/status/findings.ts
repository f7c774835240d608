/** What someone has to look at. Each finding is a line that names an object, or where to look next. */
import {
  agentProblems,
  configurationProblems,
  daemonSetProblems,
  emptyDeployments,
  troubles,
} from '../installation/problems.ts';
import type { Installation } from '../installation/installation.ts';
import { describeProblem, type Problem } from '../../src/policy/configuration/problem.ts';
import { counted } from '../program/table.ts';
import type { Status } from './collect.ts';

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
  const none = all.length > 0 && !all.some(({ ready }) => ready) ? [`no webhook is ready: ${effect}`] : [];
  // The controller never creates it.
  if (state === 'missing')
    return [
      ...none,
      'the MutatingWebhookConfiguration was deleted, so pods get no placement: run helm upgrade',
    ];
  if (registered === 0)
    return [
      ...none,
      'the MutatingWebhookConfiguration has no webhooks, so new pods get no placement: the leader adds them; see its log',
    ];
  if (state === undefined || state === 'in-force') return none;
  return [...none, `the webhook configuration is not in force: ${state}; see the log of the leader`];
}

/** Agents that are not ready count even if others answer. */
function agentFindings(installation: Installation): readonly string[] {
  const none = agentProblems(installation);
  return none.length > 0
    ? none
    : installation.daemonSets.flatMap((each) => daemonSetProblems(each, installation));
}
