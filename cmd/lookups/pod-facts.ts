/**
 * What `explain` and `report` need of a pod. Objects that it depends on come from files first, then from the
 * cluster, until a request to it fails; image facts from the cluster, from agents, or from this machine.
 */
import { ownNames } from '../../src/names/keys.ts';
import { existsSync } from 'node:fs';
import { readConfigMaps } from '../../src/cluster/config-map.ts';
import { createFactsOfPod, type FactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { createPullableNodes } from '../../src/cluster/pullable-nodes.ts';
import { createPullSecrets, type PullSecrets } from '../../src/cluster/pull-secrets.ts';
import { systemClock } from '../../src/async/clock.ts';
import { brokenImagesOf, parseBroken, type BrokenImage } from '../../src/images/sources/broken-images.ts';
import { noAgentsHint } from '../../src/images/facts/facts.ts';
import { createClusterFacts, factsService } from '../../src/facts-api/client.ts';
import { openImageFacts } from '../wiring/image-facts.ts';
import type { Kubernetes } from '../wiring/kubernetes.ts';
import { close } from '../program/context.ts';
import type { Invocation } from '../program/subcommand.ts';
import { objectName, toggle } from '../program/flag.ts';
import { releaseFlag, type OptionalCluster, type Release } from '../wiring/cluster.ts';
import type { Query } from '../../src/kube/api/transport.ts';
import { unlessAborted } from '../../src/async/wait.ts';
import { clusterObjects, type Cluster, type ClusterObjects } from '../../src/cluster/cluster.ts';
import type { Input } from '../objects/input.ts';
import { messageOf } from '../../src/names/printable.ts';

export interface PodContext extends Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> {
  namespaceLabels(namespace: string, signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Any object or list of the cluster; `undefined` if it cannot be read. */
  read<T>(path: string, signal: AbortSignal, query?: Query): Promise<T | undefined>;
  nodeArchitecture(node: string, signal: AbortSignal): Promise<string | undefined>;
}

/** Time for one request to the cluster. A GET by name takes milliseconds, in a busy cluster seconds. */
const limitMs = 10_000;

function createPodContext(
  input: Options['input'],
  cluster: ClusterObjects | undefined,
  warn: (message: string) => void,
): PodContext {
  let isIgnored = cluster === undefined;

  async function query<T>(
    read: (objects: ClusterObjects, signal: AbortSignal) => Promise<T | undefined>,
    caller: AbortSignal,
  ): Promise<T | undefined> {
    if (cluster === undefined || isIgnored) return undefined;
    const signal = AbortSignal.any([caller, AbortSignal.timeout(limitMs)]);
    try {
      // A kubeconfig's exec plugin may hang, and it does not get the signal.
      return await unlessAborted(read(cluster, signal), signal);
    } catch (error) {
      caller.throwIfAborted();
      if (!isIgnored) warn(`the cluster cannot be used and is ignored: ${messageOf(error)}`);
      isIgnored = true;
      return undefined;
    }
  }

  return {
    secret: async (namespace, name, signal) => {
      const secret =
        input.secrets.get(`${namespace}/${name}`) ??
        (await query((objects, limit) => objects.secret(namespace, name, limit), signal));
      if (secret === undefined) {
        const where = isIgnored ? 'in the files (the cluster is ignored)' : 'in the files or in the cluster';
        warn(`pull secret ${namespace}/${name} is not ${where}; images are looked up without it`);
      }
      return secret;
    },
    serviceAccountPullSecrets: async (namespace, name, signal) =>
      input.serviceAccounts.get(`${namespace}/${name}`) ??
      (await query((objects, limit) => objects.serviceAccountPullSecrets(namespace, name, limit), signal)) ??
      [],
    read: (path, signal, parameters) =>
      query((objects, limit) => objects.read(path, limit, parameters), signal),
    namespaceLabels: async (namespace, signal) => {
      const labels = input.namespaces.get(namespace);
      // The API server sets this label on each namespace.
      if (labels) return { ...labels, 'kubernetes.io/metadata.name': namespace };
      return (await query((objects, limit) => objects.namespaceLabels(namespace, limit), signal)) ?? {};
    },
    nodeArchitecture: (node, signal) =>
      query((objects, limit) => objects.nodeArchitecture(node, limit), signal),
  };
}

const discoveryMs = 5000;
/** A report of a large cluster reads each pull secret once. */
const keepSecretsMs = 600_000;
/** Time to read the pull secrets before the images are inspected. */
const readingSecretsMs = 6000;
/** A request through the API server may wait for a place this long. */
const waitingMs = 60_000;

/** Node names are good enough here. The hostname label differs on few clusters. */
const nodeHostnames = (node: string): readonly string[] => [node];

export const lookupFlags = {
  local: toggle(
    'Looks up images from this machine with your credentials, not through the cluster’s controller.',
  ),
  asServiceAccount: objectName(
    'Account that authenticates to the controller; it must be allowed to create `imagefacts.arch.example`. Default: `default` in each pod’s namespace.',
  ),
  ...releaseFlag,
};

export type PodFacts = Awaited<ReturnType<typeof openPodFacts>>;

interface Options {
  readonly invocation: Pick<Invocation<typeof lookupFlags>, 'flags' | 'io' | 'say' | 'stop'>;
  readonly cluster: OptionalCluster;
  /** Objects in files, which come before those of the cluster. */
  readonly input: Pick<Input, 'secrets' | 'serviceAccounts' | 'namespaces'>;
  /** Called with each path that may not be read. */
  readonly onForbidden?: (path: string) => void;
  /** Called with the reason if images could not be looked up. */
  readonly onProblem: (message: string) => void;
}

/** @param opened closes what this opens */
export async function openPodFacts(options: Options, opened: AsyncDisposableStack) {
  const { cluster, input, invocation, onForbidden = () => undefined } = options;
  const { kubernetes, release, own, context } = cluster;
  const { configuration, log, metrics } = context;
  const objects = kubernetes && clusterObjects({ client: kubernetes.client, log, onForbidden });
  const podContext = createPodContext(input, objects, (message) => invocation.say(message, 'warning'));
  const clock = systemClock;
  const pullSecrets = createPullSecrets({ cluster: podContext, keepMs: keepSecretsMs, clock, metrics });
  const { namespace } = configuration;
  const notes = { namespace, name: ownNames(configuration).brokenImages };
  /** None without the permission. Without `namespace`, all are searched. */
  const brokenNotes = ((await readConfigMaps(notes, podContext, invocation.stop)) ?? []).flatMap(parseBroken);
  /** Time limit for the images of one pod. */
  const budgetMs = configuration.inspectTimeout + readingSecretsMs;
  const { local } = invocation.flags;
  const hasAgents = own.configuration.agents.length > 0;
  /** The controller of the cluster, the agents of the setting `agents`, or this machine. */
  const lookupsBy = local || !(hasAgents || release) ? 'machine' : hasAgents ? 'agents' : 'controller';
  const source =
    kubernetes && release && lookupsBy === 'controller'
      ? factsOfCluster(options, { kubernetes, release, budgetMs }, opened)
      : await factsOfOwn(options, { pullSecrets, brokenNotes, lookupsBy }, opened);
  let agentsAnswer = true;
  const factsOfPod: FactsOfPod = async (request) => {
    const found = await source.factsOfPod(request);
    agentsAnswer &&= ![...found.values()].some(({ error }) => error?.hint === noAgentsHint);
    return found;
  };
  return {
    ...source,
    podContext,
    factsOfPod,
    lookupsBy,
    pullSecrets,
    brokenNotes,
    budgetMs,
    /** False if images were not looked up because there is no agent: then the webhook gates no pod. */
    agentsAnswer: () => agentsAnswer,
  };
}

function factsOfCluster(
  { invocation: { flags, stop }, onProblem }: Options,
  { kubernetes, release, budgetMs }: { kubernetes: Kubernetes; release: Release; budgetMs: number },
  opened: AsyncDisposableStack,
) {
  const client = opened.adopt(kubernetes.another(budgetMs + waitingMs), close);
  const { asServiceAccount: serviceAccount } = flags;
  const factsOfPod = createClusterFacts({ client, release, serviceAccount, onProblem, stop });
  /** Who looked up the images, and with which credentials, as the words after `looked up`. */
  const lookups = `through ${factsService(release)}, with the credentials of its agents and of the pods`;
  /** The command that shows the messages of registries too: they stay in the cluster, unless an account may read them. */
  const insideCluster =
    serviceAccount === undefined
      ? `kubectl -n ${release.namespace} exec deployment/${release.name}-controller -- archwright`
      : undefined;
  return { factsOfPod, lookups, insideCluster, fleet: undefined, pullableNodes: undefined };
}

interface OwnOptions {
  readonly pullSecrets: PullSecrets;
  readonly brokenNotes: readonly BrokenImage[];
  readonly lookupsBy: 'controller' | 'agents' | 'machine';
}

async function factsOfOwn(
  { invocation: { io, stop }, cluster: { kubernetes, context } }: Options,
  { pullSecrets, brokenNotes, lookupsBy }: OwnOptions,
  opened: AsyncDisposableStack,
) {
  const { dockerConfigs, log, metrics } = context;
  const configuration =
    lookupsBy === 'machine' ? { ...context.configuration, agents: [] } : context.configuration;
  // In a pod of the controller, where the chart sets this variable. Elsewhere, `agentTlsDir` names a directory.
  const { client, podNamespace: namespace } = (io.env['ARCHWRIGHT_CONFIG'] && kubernetes) || {};
  const name = ownNames(configuration).controllerClientTlsSecret;
  const { cache, requestOf, fleet, places } = await openImageFacts(
    {
      configuration: () => configuration,
      dockerConfigs,
      env: io.env,
      stop,
      client: kubernetes?.client,
      clientSecret: client && namespace ? { client, namespace, name, clock: systemClock, log } : undefined,
      log,
      metrics,
    },
    opened,
  );
  const patience = AbortSignal.any([stop, AbortSignal.timeout(discoveryMs)]);
  // A refusal goes on to the other credential groups, so they must be known first.
  await fleet?.grouped(patience);
  const broken = brokenImagesOf(brokenNotes, systemClock.now);
  const common = { requestOf, pullSecrets, clock: systemClock, log };
  const factsOfPod = createFactsOfPod({ ...common, cache, broken });
  const pullableNodes = fleet && createPullableNodes({ ...common, fleet, nodeHostnames });
  const lookups = fleet
    ? `by the agents of ${configuration.agents.join(', ')}, with their credentials and those of the pods`
    : `from this machine, ${ownCredentials(places)}`;
  return { factsOfPod, lookups, insideCluster: undefined, fleet, pullableNodes };
}

function ownCredentials(places: readonly string[]): string {
  const existing = places.flatMap((place) => place.split(', ')).filter((path) => existsSync(path));
  if (existing.length === 0) return 'with no credentials other than the pods’ pull secrets';
  return `with the credentials of ${[...new Set(existing)].join(', ')} and the pull secrets of the pods`;
}
