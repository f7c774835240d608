/** What someone has to look at. Each finding is a line that names an object, or where to look next. */
import { agentProblems, configurationProblems, daemonSetProblems } from '../installation/problems.ts';
import type { Installation } from '../installation/installation.ts';
import { printable } from '../../src/names/printable.ts';
import { counted } from '../program/table.ts';
import type { Status } from './status.ts';

/** Certificates are replaced after two thirds of their life. */
const expiresSoonMs = 7 * 86_400_000;
const maxTroubleBytes = 300;

export function findingsOf(
  status: Omit<Status, 'findings'>,
  installation: Installation,
  now: number,
): readonly string[] {
  const { namespace, webhooks, certificates, gated, taints, misplacedPods, credentialProblems } = status;
  const mayList = !status.unread.some((each) => each.startsWith('pods:'));
  if (installation.replicas.length === 0 && mayList)
    return [`no archwright runs in the namespace ${namespace}; set --namespace`];
  const soon = certificates.filter(({ expires }) => Date.parse(expires) - now < expiresSoonMs);
  const late = gated.byReason.filter(({ age }) => age === 'older');
  return [
    ...troubles(installation),
    ...configurationProblems(installation),
    ...agentFindings(installation),
    ...(webhooks.state === undefined || webhooks.state === 'in-force'
      ? []
      : [`the webhook configuration is not in force: ${webhooks.state}; see the log of the leader`]),
    ...soon.map(({ replica, use, expires }) => `${replica}: its ${use} certificate expires at ${expires}`),
    ...late.map(({ reason, pods }) => `${counted(pods, 'pod')} gated for more than five minutes: ${reason}`),
    ...Object.entries(taints.heldBackBy).map(
      ([reason, count]) => `taints are held back: ${reason} (${count})`,
    ),
    ...(misplacedPods
      ? [`${counted(misplacedPods, 'misplaced pod')}: kubectl get events -A | grep MisplacedPod`]
      : []),
    ...credentialProblems,
  ];
}

function troubles({ replicas }: Installation): readonly string[] {
  return replicas.flatMap(({ part, name, trouble }) =>
    part === 'agent' || trouble === undefined ? [] : `${name}: ${printable(trouble, maxTroubleBytes)}`,
  );
}

/** Agents that are not ready count even if others answer. */
function agentFindings(installation: Installation): readonly string[] {
  const none = agentProblems(installation);
  return none.length > 0
    ? none
    : installation.daemonSets.flatMap((each) => daemonSetProblems(each, installation));
}
