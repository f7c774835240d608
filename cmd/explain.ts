/**
 * `archwright explain`: what the webhook would do to the objects in files, and why. The steps are the webhook's own; only
 * where facts and surroundings come from differs: files and the cluster by name, registries or agents, without haste.
 */
import { setMaxListeners } from 'node:events';
import { stringify } from 'yaml';
import { FileError } from '../src/files/error.ts';
import { concurrently } from '../src/async/concurrently.ts';
import { systemClock } from '../src/async/clock.ts';
import { clusterObjects } from '../src/cluster/objects.ts';
import { createFactsOfPod } from '../src/cluster/facts-of-pod.ts';
import { bindCounters } from '../src/webhook/metrics.ts';
import { createPullSecrets } from '../src/cluster/pull-secrets.ts';
import { createPullableNodes } from '../src/cluster/pullable-nodes.ts';
import { DocumentError, parseObjects, readText, type FoundObject } from './objects/documents.ts';
import { brokenImagesAround } from './explain/broken-images.ts';
import { describe } from './explain/describe.ts';
import { createExplainer, isAdmitted, type Explanation } from './explain/explainer.ts';
import { sortObjects, type Input } from './explain/input.ts';
import { parseNamedObject, readNamedObjects } from './explain/named-objects.ts';
import { policiesAround } from './explain/policies.ts';
import { resultOf } from './explain/result.ts';
import { createPodContext } from './explain/context.ts';
import { openInspector } from './wiring/inspector.ts';
import { openKubernetes, withOwnNamespace, type Kubernetes } from './wiring/kubernetes.ts';
import { openMemory } from './wiring/memory.ts';
import { openCliContext, outputOf, untilStopped, type CliContext } from './program/cli-context.ts';
import { exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS] [-f FILE…] [KIND/NAME…]',
  description:
    'Says what would be decided for pods and workloads, in files (`-f`) or of the cluster (`pod/web-0`, `deploy/web`), as if ' +
    'they were created now, and why: each rule by name, and for each image ' +
    'its architectures, where they were learned and with which credential. Secrets, service accounts, namespaces and custom resources ' +
    'in the same files count; more comes from the cluster of your kubeconfig, where there is one. Images are asked ' +
    'for at registries, or at agents with `--agents`. Exit code: 0 where everything would be admitted, 1 where ' +
    'something would be denied or cannot be understood, 2 for wrong usage.',
  settings: 'explain',
  flags: {
    filename: {
      value: 'FILE',
      short: 'f',
      help: 'YAML or JSON with objects; `-` is standard input. May be given several times.',
    },
    namespace: {
      value: 'NAME',
      short: 'n',
      help: 'Namespace of named objects, and of those in files that name none. Default: that of the kubeconfig context.',
    },
    output: { value: 'table|json|yaml', short: 'o', help: 'How to write. Default: table.' },
    patch: {
      help: 'Adds the JSON patch of the webhook, and the result: the scheduling fields, or with json and yaml the whole object.',
    },
  },
  run: (invocation) => untilStopped(invocation.stop, () => run(invocation)),
};

/** Objects looked at together; a chart has some dozens, and their images share registries. */
const concurrentObjects = 8;
/** Pull secrets are read first, in the time that `by-name.ts` gives them; then each image has its own limit. */
const readingSecretsMs = 6000;
const keepSecretsMs = 60_000;
/** Its Lease and its notes, which people rarely may read. What else is left out may decide: the labels of a namespace, a custom resource. */
const ofArchwright = /\/(?:leases|configmaps)$/;

async function run(invocation: Invocation): Promise<number> {
  const { io, flags, stop } = invocation;
  const output = outputOf('explain', invocation, ['table', 'json', 'yaml']);
  const named = invocation.positionals.map(parseNamedObject);
  const inFiles = await readObjects(invocation, named.length > 0);
  const shot = await openCliContext(invocation);
  const warn = (message: string): void => io.err(`archwright: warning: ${message}\n`);
  await using opened = new AsyncDisposableStack();
  const kubernetes = await connect(invocation, shot, warn);
  if (kubernetes) opened.defer(() => kubernetes.client.close());
  const namespace = flags.get('namespace')?.at(-1) ?? kubernetes?.access.namespace ?? 'default';
  if (named.length > 0 && !kubernetes)
    throw new UsageError('explain', 'there is no cluster to read that from; name one by --kubeconfig');
  const inCluster = kubernetes
    ? await readNamedObjects(named, { client: kubernetes.client, namespace, stop })
    : [];
  const input = sortObjects([...inFiles, ...inCluster], namespace);
  tellWhatIsLeftOut(input, warn);
  if (input.subjects.length === 0 && input.unclear.length === 0) {
    throw new UsageError('explain', 'there is no pod and no workload in what was given');
  }
  const explainer = await openExplainer(invocation, shot, { kubernetes, input, warn }, opened);
  setMaxListeners(0, stop);
  const explanations = await concurrently(input.subjects, concurrentObjects, explainer);
  io.out(write(explanations, output, flags.has('patch')));
  const isAllRight = input.unclear.length === 0 && explanations.every(isAdmitted);
  return isAllRight ? exitCodes.success : exitCodes.failure;
}

async function readObjects({ flags, io }: Invocation, areNamed: boolean): Promise<readonly FoundObject[]> {
  const files = flags.get('filename') ?? [];
  if (files.length === 0 && !areNamed)
    throw new UsageError(
      'explain',
      'name a file by -f, - for standard input, or an object of the cluster: pod/web-0',
    );
  const found: FoundObject[] = [];
  for (const file of files) {
    try {
      found.push(...parseObjects(await readText(file, io.stdin)));
    } catch (error) {
      if (error instanceof FileError || error instanceof DocumentError) {
        throw new UsageError('explain', error.message);
      }
      throw error;
    }
  }
  return found;
}

/** A cluster that was named has to be there; the person's usual one only helps. */
async function connect(
  invocation: Invocation,
  { configuration }: CliContext,
  warn: (message: string) => void,
): Promise<Kubernetes | undefined> {
  try {
    return await openKubernetes(configuration, invocation, 'own kubeconfig');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (configuration.kubeconfig !== undefined || configuration.kubeContext !== undefined) {
      throw new UsageError('explain', message);
    }
    warn(`the cluster of the kubeconfig is left out: ${message}`);
    return undefined;
  }
}

function tellWhatIsLeftOut({ skipped, unclear }: Input, warn: (message: string) => void): void {
  for (const { kind, name, place } of skipped) warn(`${place}: ${kind} ${name} is skipped, it has no pods`);
  for (const place of unclear) warn(`${place}: this is no Kubernetes object, it has no kind`);
}

interface World {
  readonly kubernetes: Kubernetes | undefined;
  readonly input: Input;
  readonly warn: (message: string) => void;
}

async function openExplainer(
  invocation: Invocation,
  shot: CliContext,
  { kubernetes, input, warn }: World,
  opened: AsyncDisposableStack,
): Promise<ReturnType<typeof createExplainer>> {
  const { configuration, log, metrics } = shot;
  const { inspector, fleet } = await openInspector('explain', invocation, shot, kubernetes, opened);
  const memory = await openMemory({ configuration: () => configuration, inspector, log, metrics });
  opened.defer(() => memory.close());
  const onForbidden = (path: string): void => {
    if (!ofArchwright.test(path)) warn(`${path} may not be read, so the answer is without it`);
  };
  const cluster = kubernetes && clusterObjects({ client: kubernetes.client, log, onForbidden });
  const surroundings = createPodContext({ input, cluster, warn });
  const clock = systemClock;
  const pullSecrets = createPullSecrets({ cluster: surroundings, keepMs: keepSecretsMs, clock, metrics });
  const policies = await policiesAround({
    configuration,
    input,
    surroundings,
    isClusterKnown: cluster !== undefined,
    stop: invocation.stop,
  });
  const inForce = kubernetes ? withOwnNamespace(() => configuration, kubernetes)() : configuration;
  const broken = await brokenImagesAround(inForce, surroundings, invocation.stop);
  if (configuration.requirePullableNodes && !fleet)
    warn('which nodes can pull is known to agents only; name them by --agents');
  return createExplainer({
    factsOfPod: createFactsOfPod({
      memory,
      pullSecrets,
      counters: bindCounters(metrics),
      broken,
      clock,
      log,
    }),
    // The names do for a person; the label that the webhook reads says something else on few clusters.
    pullableNodes: fleet && createPullableNodes({ fleet, pullSecrets, nodeHostname: (node) => node, log }),
    policies,
    surroundings,
    budgetMs: configuration.inspectTimeout + readingSecretsMs,
    stop: invocation.stop,
  });
}

function write(
  explanations: readonly Explanation[],
  output: 'table' | 'json' | 'yaml',
  withPatch: boolean,
): string {
  if (output === 'table') return explanations.map((each) => describe(each, withPatch)).join('\n');
  const document = { results: explanations.map((each) => resultOf(each, withPatch)) };
  if (output === 'json') return `${JSON.stringify(document, undefined, 2)}\n`;
  return stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
}
