/** What `archwright status` shows, from the API server and the metrics of replicas. */
import { ownNames } from '../../src/names/keys.ts';
import {
  mayRead,
  readInstallation,
  type Installation,
  type InstallationReader,
  type ReadReplica,
} from '../installation/installation.ts';
import { configurationHashOf, leads } from '../installation/problems.ts';
import { agentPoolOf } from '../installation/replicas.ts';
import type { Samples } from '../installation/scrape.ts';
import { carriesGate } from '../../src/controller/state/waiting-pods.ts';
import { idOfEvent } from '../../src/controller/features/credential-problems/credential-problems.ts';
import type { WebhookConfiguration } from '../../src/controller/state/webhooks-file.ts';
import type { ConfigMap, KubeObject, Pod } from '../../src/kube/api/objects.ts';
import { objectsOf, type Page } from '../../src/kube/api/pages.ts';
import { ignoring } from '../../src/kube/api/errors.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { loadConfiguration, type LoadedConfiguration } from '../../src/policy/configuration/configuration.ts';
import { parseBroken } from '../../src/images/sources/broken-images.ts';

const maxOldest = 5;

/** Also the output of `--output json`. Times are ISO 8601. `undefined`: not known, or it may not be read. */
export type Status = Awaited<ReturnType<typeof collectStatus>>['status'];

/** @throws KubeError if the API server does not answer */
export async function collectStatus(reader: InstallationReader) {
  const { client, namespace } = reader;
  const installation = await readInstallation(reader);
  const unread = [...installation.unread];
  const may = mayRead(unread);
  const loaded = await configurationOf(installation, namespace);
  const { webhookConfiguration: webhooksName } = loaded?.configuration ?? {};
  const brokenImagesName = loaded?.configuration && ownNames(loaded.configuration).brokenImages;
  const [registered, broken, nodes, gated] = await Promise.all([
    webhooksName === undefined ? undefined : may('webhooks', readWebhooks(reader, webhooksName)),
    brokenImagesName === undefined ? undefined : may('broken images', readBroken(reader, brokenImagesName)),
    may('nodes', countNodes(reader)),
    may('gated pods', listGated(reader)),
  ]);
  const leader = installation.replicas.find(leads)?.samples;
  const now = client.serverNow();
  const webhooks = registered === 'deleted' ? undefined : registered;
  const stateOf = leader?.all('archwright_webhook_configuration').find(({ value }) => value === 1)?.labels;
  const status = {
    namespace,
    replicas: installation.replicas.filter(({ part }) => part !== 'agent').map(replicaOf(installation)),
    webhooks: {
      /** The leader's view: `in-force`, `waiting`, …; `missing` also without a leader. */
      state: registered === 'deleted' ? 'missing' : stateOf?.['state'],
      registered: webhooks?.length,
      failurePolicies: [...new Set(webhooks?.map(({ failurePolicy = 'Fail' }) => failurePolicy))],
    },
    certificates: installation.replicas.flatMap(certificatesOf),
    nodes,
    agents: installation.daemonSets.map((each) => ({
      daemonSet: each.metadata?.name ?? '',
      pool: agentPoolOf(each),
      wanted: each.status?.desiredNumberScheduled ?? 0,
      ready: each.status?.numberReady ?? 0,
    })),
    gated: {
      /** The leader's view. */
      byReason: (leader?.all('archwright_gated_pods') ?? [])
        .filter(({ value }) => value > 0)
        .map(({ labels, value }) => ({
          reason: labels['reason'] ?? '',
          age: labels['age'] ?? '',
          pods: value,
        })),
      oldest: gated?.toSorted((a, b) => (a.since < b.since ? -1 : 1)).slice(0, maxOldest),
    },
    taints: {
      heldBackBy: leader?.counts('archwright_taint_blockers', 'reason'),
    },
    /** The leader's count; none if the feature is off. */
    misplacedPods:
      loaded?.configuration?.misplacedPods === 'off' ? undefined : leader?.value('archwright_misplaced_pods'),
    brokenImages: broken
      ?.filter(({ until }) => until > now)
      .map(({ image, architecture, until }) => ({
        image,
        architecture,
        until: new Date(until).toISOString(),
      })),
    credentialProblems: credentialProblemsOf(installation, leader),
    /** Programs that nodes could not execute, if agents trace them. */
    programErrors: programErrorsOf(leader),
    /** Requests that Docker Hub allows the node that has the smallest part left, if it says so. */
    dockerHub: dockerHubOf(leader),
    unread,
  };
  return { status, installation, configurationProblems: loaded?.problems ?? [] };
}

async function readWebhooks({ client, signal }: InstallationReader, name: string) {
  const path = paths.mutatingWebhookConfigurations(name);
  const found = await ignoring('not-found', client.get<WebhookConfiguration>(path, { signal }));
  return found ? (found.webhooks ?? []) : 'deleted';
}

/** The configuration of the controller or webhook. Settings that only another version knows are left out. */
async function configurationOf(
  { replicas, configurations }: Installation,
  namespace: string,
): Promise<LoadedConfiguration | undefined> {
  const { configMap = '' } = replicas.find(({ part }) => part !== 'agent') ?? {};
  const text = configurations.get(configMap)?.text;
  if (text === undefined) return undefined;
  const cluster = { where: `ConfigMap ${namespace}/${configMap}`, text };
  return await loadConfiguration({ cluster, env: {}, flags: {} });
}

function replicaOf({ configurations }: Installation) {
  return (replica: ReadReplica) => {
    const { part, name, node, isReady: ready, samples, image } = replica;
    const wanted = configurations.get(replica.configMap ?? '')?.hash;
    const configuration = configurationHashOf(replica);
    const isComparable = wanted !== undefined && configuration !== undefined;
    const version = samples?.label('archwright_build_info', 'version') ?? tagOf(image);
    /** Whether this is the configuration of the ConfigMap. */
    const inForce = isComparable ? wanted === configuration : undefined;
    return { part, name, node, version, ready, leads: leads(replica), configuration, inForce };
  };
}

function tagOf(image: string): string | undefined {
  return /:([^:/@]+)(?:@|$)/.exec(image)?.[1];
}

function certificatesOf({ name, samples }: ReadReplica) {
  const found = samples?.counts('archwright_tls_certificate_expiry_timestamp_seconds', 'use') ?? {};
  return Object.entries(found).map(([use, seconds]) => {
    return { replica: name, use, expires: new Date(seconds * 1000).toISOString() };
  });
}

async function readBroken({ client, namespace, signal }: InstallationReader, name: string) {
  const query = { fieldSelector: `metadata.name=${name}` };
  const page = await client.get<Page<ConfigMap>>(paths.configMaps(namespace), { signal, query });
  return parseBroken(page.items?.[0]?.data);
}

/** The API server counts the rest of a list. */
async function countNodes({ client, signal }: InstallationReader): Promise<number> {
  interface Counted extends Page<KubeObject> {
    readonly metadata?: Page<KubeObject>['metadata'] & { readonly remainingItemCount?: number };
  }
  const { items, metadata } = await client.get<Counted>(paths.nodes(), { signal, query: { limit: 1 } });
  return (items ?? []).length + (metadata?.remainingItemCount ?? 0);
}

async function listGated({ client, signal }: InstallationReader) {
  const found: { pod: string; since: string }[] = [];
  const query = { fieldSelector: 'status.phase=Pending' };
  for await (const { metadata = {}, spec } of objectsOf<Pod>(client, paths.pods(), { signal, query })) {
    if (!carriesGate({ spec })) continue;
    const { namespace = '', name = '', creationTimestamp = '' } = metadata;
    found.push({ pod: `${namespace}/${name}`, since: creationTimestamp });
  }
  return found;
}

/** Agents' metrics are on the loopback addresses of their nodes. The leader asks the agents once a minute. */
function dockerHubOf(leader: Samples | undefined) {
  const limit = leader?.value('archwright_fleet_docker_hub_limit_requests') ?? 0;
  const remaining = leader?.value('archwright_fleet_docker_hub_limit_remaining_requests') ?? 0;
  return limit > 0 ? { limit, remaining } : undefined;
}

function programErrorsOf(leader: Samples | undefined) {
  const nodes = leader?.counts('archwright_exec_tracing_nodes', 'state') ?? {};
  const containers = leader?.value('archwright_program_exec_format_containers') ?? 0;
  return Object.keys(nodes).length === 0 ? undefined : { containers, nodes };
}

/** Events of problems that are solved stay for an hour: only the leader knows which are not. */
function credentialProblemsOf(
  { warnings, unread }: Installation,
  leader: Samples | undefined,
): readonly string[] | undefined {
  const ids = leader?.label('archwright_credential_problems_info', 'ids')?.split(' ');
  if (ids === undefined || unread.some((each) => each.startsWith('events:'))) return undefined;
  const current = warnings.filter(
    ({ reason, message }) => reason === 'CredentialProblem' && ids.includes(idOfEvent(message)),
  );
  return [...new Set(current.map(({ message }) => message))];
}
