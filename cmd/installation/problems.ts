/** What keeps an installation from working as configured. Each problem is one line that names the object. */
import { printable } from '../../src/names/printable.ts';
import { counted } from '../program/table.ts';
import type { Installation, ReadReplica, WarningEvent } from './installation.ts';
import { agentPoolOf, type Replica, type Workload } from './replicas.ts';

const maxMessageBytes = 300;
/** Pods that fail for the same reason are one line. */
const maxDetails = 5;

export function configurationHashOf({ samples }: ReadReplica): string | undefined {
  return samples?.label('archwright_configuration_info', 'hash');
}

export function leads({ samples }: ReadReplica): boolean {
  return samples?.value('archwright_controller_leading') === 1;
}

/** Webhooks and controllers that are not ready, and why. */
export function troubles(replicas: readonly Replica[]): readonly string[] {
  return replicas.flatMap(({ part, name, trouble }) =>
    part === 'agent' || trouble === undefined ? [] : `${name}: ${shown(trouble)}`,
  );
}

/** What keeps the configuration from being in force in every webhook and controller. */
export function configurationProblems(installation: Installation): readonly string[] {
  const { deployments, replicas, configurations } = installation;
  const running = replicas.filter(({ part, isRunning }) => part !== 'agent' && isRunning);
  const outdated = running.flatMap((replica) => {
    const wanted = configurations.get(replica.configMap ?? '')?.hash;
    const actual = configurationHashOf(replica);
    if (wanted === undefined || actual === undefined || actual === wanted) return [];
    const role = leads(replica) ? ', which leads,' : '';
    return `${replica.name}${role} still has the configuration ${actual}; its ConfigMap has ${wanted}`;
  });
  const controllers = replicas.filter(({ part }) => part === 'controller');
  const isKnown = controllers.length > 0 && controllers.every((each) => each.samples || !each.isRunning);
  const leaderless = isKnown && !controllers.some(leads) ? ['no controller leads'] : [];
  return [...deployments.flatMap(rolloutProblem), ...outdated, ...leaderless];
}

function rolloutProblem({ metadata, status }: Workload): readonly string[] {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0 } = status ?? {};
  const name = `Deployment ${metadata?.name ?? ''}`;
  if (observedGeneration < (metadata?.generation ?? 0))
    return [`${name}: the last change is not rolled out yet`];
  return replicas > updatedReplicas
    ? [`${name}: ${counted(replicas - updatedReplicas, 'pod')} still to be replaced`]
    : [];
}

const effects: ReadonlyMap<string | undefined, string> = new Map([
  ['webhook', 'new pods are not placed'],
  ['controller', 'gated pods wait, and certificates are not renewed'],
]);

/** Deployments without any pod: scaled to zero, or a quota or a policy refuses their pods. */
export function emptyDeployments({ deployments, replicas, warnings }: Installation): readonly string[] {
  return deployments.flatMap(({ metadata, spec }) => {
    const { name = '', labels = {} } = metadata ?? {};
    const part = labels['app.kubernetes.io/component'];
    if (replicas.some((replica) => replica.part === part)) return [];
    const refused = warnings.find(
      (event) =>
        event.kind === 'ReplicaSet' && event.reason === 'FailedCreate' && event.name.startsWith(`${name}-`),
    );
    const cause = refused ? `FailedCreate: ${shown(causeOf(refused.message))}` : 'they are not created yet';
    const why = spec?.replicas === 0 ? 'it has 0 replicas in its spec' : cause;
    return [`Deployment ${name} has no pods, so ${effects.get(part) ?? 'it does nothing'}: ${why}`];
  });
}

/** Why images stay unknown: webhooks that no agent answers, with the state of the agents' DaemonSets. */
export function agentProblems(installation: Installation): readonly string[] {
  const { replicas, daemonSets } = installation;
  // Gated pods wait for the agents of the controller that leads.
  const scraped = replicas.filter(
    (each) => each.samples !== undefined && (each.part === 'webhook' || leads(each)),
  );
  const without = scraped.filter(
    ({ samples }) => samples?.value('archwright_fleet_agents', { state: 'ready' }) === 0,
  );
  const isAnyReady = daemonSets.some(({ status }) => (status?.numberReady ?? 0) > 0);
  const causes = daemonSets.flatMap((each) => daemonSetProblems(each, installation));
  if (without.length === 0)
    return scraped.length > 0 || daemonSets.length === 0 || isAnyReady
      ? []
      : ['no agent is ready', ...causes];
  const names = without.map(({ name }) => name).join(', ');
  const unreachable =
    'the agents are ready, but the webhook cannot reach them: check that its nodes reach the agents’ port (agent.port)';
  return [`no agent answers ${names}`, ...(causes.length > 0 ? causes : [unreachable])];
}

/** Why agents of a DaemonSet are not ready; empty if all are. */
export function daemonSetProblems(
  daemonSet: Workload,
  { replicas, warnings }: Installation,
): readonly string[] {
  const name = daemonSet.metadata?.name ?? '';
  const { desiredNumberScheduled: desired = 0, numberReady: ready = 0 } = daemonSet.status ?? {};
  const label = `DaemonSet ${name}`;
  if (desired === 0)
    return [`${label}: no node is selected; see agentNodes, agent.nodeSelector and agent.affinity`];
  if (ready >= desired) return [];
  const own = replicas.filter(({ part, pool }) => part === 'agent' && pool === agentPoolOf(daemonSet));
  // An event about pods that exist now is out of date, as is one about an earlier DaemonSet of this name.
  const isAboutThis = ({ kind, name: of, uid }: WarningEvent): boolean =>
    kind === 'DaemonSet' && of === name && (uid === undefined || uid === daemonSet.metadata?.uid);
  const refused =
    own.length < desired &&
    warnings.find((event) => isAboutThis(event) && event.reason !== 'CredentialProblem');
  const pods = own.filter(({ trouble }) => trouble !== undefined);
  const byTrouble = Map.groupBy(pods, ({ trouble = '' }) => withoutNames(trouble));
  const details = [...byTrouble.values()].slice(0, maxDetails).map((alike) => {
    const [first] = alike;
    const more = alike.length > 1 ? ` and ${alike.length - 1} more` : '';
    const said = warnings.find((event) => event.kind === 'Pod' && event.name === first?.name)?.message;
    const why = first?.trouble === 'Pending' || first?.trouble === 'ContainerCreating' ? said : undefined;
    return `${label}: ${first?.name ?? ''}${more}: ${shown(first?.trouble ?? '')}${why ? `: ${shown(why)}` : ''}`;
  });
  return [
    `${label}: ${ready} of ${desired} agents are ready`,
    ...(refused ? [`${label}: ${refused.reason}: ${shown(causeOf(refused.message))}`] : []),
    ...details,
  ];
}

/** Drops the pod's name, which differs in each event (kubernetes pkg/controller/controller_utils.go). */
function causeOf(message: string): string {
  return message
    .replace('(combined from similar events): ', '')
    .replace(/^Error creating: (?:pods "[^"]*" is forbidden: )?/, '');
}

/** Messages of the kubelet name the container and the pod. */
function withoutNames(text: string): string {
  return text.replaceAll(/[\w-]*agent-\w{5}\b|[0-9a-f-]{36}/g, '…');
}

function shown(text: string): string {
  return printable(text, maxMessageBytes);
}
