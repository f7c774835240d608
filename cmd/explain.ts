/**
 * `archwright explain`: what the webhook would do to objects, and why. It runs the webhook's own steps. Only the sources
 * differ: files and the cluster, registries or agents, with more time.
 */
import { setMaxListeners } from 'node:events';
import { stringify } from 'yaml';
import { concurrently } from '../src/async/concurrently.ts';
import { clusterObjects } from '../src/cluster/cluster.ts';
import { createPullableNodes } from '../src/cluster/pullable-nodes.ts';
import { parseObjects, readText, type FoundObject } from './objects/documents.ts';
import { describe, resultOf } from './explain/describe.ts';
import { createExplainer, isAdmitted, type Explanation } from './explain/explainer.ts';
import { sortObjects, type Input } from './explain/input.ts';
import { parseNamedObject, readNamedObjects } from './explain/named-objects.ts';
import { nodeClassesAround } from './explain/nodes.ts';
import { openPodFacts } from './explain/pod-facts.ts';
import { policiesAround } from './explain/policies.ts';
import { createPodContext } from './explain/context.ts';
import { openKubernetes, type Kubernetes } from './wiring/kubernetes.ts';
import { openCliContext, untilStopped, type CliContext } from './program/context.ts';
import { choiceOf, exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';
import { messageOf } from '../src/names/printable.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS] [-f FILE…] [KIND/NAME…]',
  description:
    'Shows the decision for pods and workloads in files (`-f`) or in the cluster (`pod/web-0`, `deploy/web`), as if they were ' +
    'created now: each rule by name, and for each image its architectures, their source and the credential. Secrets, service ' +
    'accounts, namespaces and custom resources in the same files count; the rest comes from the cluster of your kubeconfig, if ' +
    'there is one. Images are looked up at registries, or at agents with `--agents`. Exit code: 0 if everything would be ' +
    'admitted, 1 if something would be denied or is invalid, 2 for wrong usage.',
  settings: 'explain',
  flags: {
    filename: {
      value: 'FILE',
      short: 'f',
      help: 'YAML or JSON with objects; `-` is standard input. Can be repeated.',
    },
    namespace: {
      value: 'NAME',
      short: 'n',
      help: 'Namespace of named objects, and of objects in files without one. Default: the namespace of the kubeconfig context.',
    },
    output: { value: 'table|json|yaml', short: 'o', help: 'Output format. Default: table.' },
    patch: {
      help: 'Adds the JSON patch of the webhook, and the result: the scheduling fields, or with json and yaml the whole object.',
    },
  },
  run: (invocation) => untilStopped(invocation.stop, () => run(invocation)),
};

/** Objects explained at a time. A chart has some dozens, and their images share registries. */
const concurrentObjects = 8;
/** archwright's Lease and records, which few people may read. Anything else that is unreadable gets a warning. */
const ofArchwright = /\/(?:leases|configmaps)$/;

async function run(invocation: Invocation): Promise<number> {
  const { io, flags, stop } = invocation;
  const output = choiceOf(invocation, 'output', ['table', 'json', 'yaml']);
  const named = invocation.positionals.map(parseNamedObject);
  const inFiles = await readObjects(invocation, named.length > 0);
  const shot = await openCliContext(invocation);
  const warn = (message: string): void => io.err(`archwright: warning: ${message}\n`);
  await using opened = new AsyncDisposableStack();
  const kubernetes = await connect(invocation, shot, warn);
  if (kubernetes) opened.defer(() => kubernetes.client.close());
  const namespace = flags.get('namespace')?.at(-1) ?? kubernetes?.access.namespace ?? 'default';
  if (named.length > 0 && !kubernetes)
    throw new UsageError('named objects require a cluster; set --kubeconfig');
  const inCluster = kubernetes ? await readNamedObjects(named, kubernetes.client, namespace, stop) : [];
  const input = sortObjects([...inFiles, ...inCluster], namespace);
  warnOfSkipped(input, warn);
  if (input.subjects.length === 0 && input.unclear.length === 0) {
    throw new UsageError('the input contains no pod and no workload');
  }
  const explainer = await openExplainer(invocation, shot, kubernetes, input, warn, opened);
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
      'name a file (-f FILE, or -f - for standard input) or an object of the cluster (pod/web-0)',
    );
  const found: FoundObject[] = [];
  for (const file of files) found.push(...parseObjects(await readText(file, io.stdin)));
  return found;
}

/** A cluster that was named explicitly must be reachable. The default one is optional. */
async function connect(
  { io }: Invocation,
  { configuration }: CliContext,
  warn: (message: string) => void,
): Promise<Kubernetes | undefined> {
  try {
    return await openKubernetes(configuration, io.env, 'own kubeconfig');
  } catch (error) {
    if (configuration.kubeconfig !== undefined || configuration.kubeContext !== undefined) {
      throw new UsageError(messageOf(error));
    }
    warn(`the cluster of the kubeconfig is ignored: ${messageOf(error)}`);
    return undefined;
  }
}

function warnOfSkipped({ skipped, unclear }: Input, warn: (message: string) => void): void {
  for (const { kind, name, place } of skipped) warn(`${place}: skipped ${kind} ${name}: it has no pods`);
  for (const place of unclear) warn(`${place}: not a Kubernetes object: it has no kind`);
}

async function openExplainer(
  invocation: Invocation,
  shot: CliContext,
  kubernetes: Kubernetes | undefined,
  input: Input,
  warn: (message: string) => void,
  opened: AsyncDisposableStack,
): Promise<ReturnType<typeof createExplainer>> {
  const { configuration, log } = shot;
  const { stop } = invocation;
  const onForbidden = (path: string): void => {
    if (!ofArchwright.test(path)) warn(`no permission to read ${path}; the decision ignores it`);
  };
  const cluster = kubernetes && clusterObjects({ client: kubernetes.client, log, onForbidden });
  const surroundings = createPodContext({ input, cluster, warn });
  const facts = await openPodFacts({ invocation, context: shot, kubernetes, surroundings }, opened);
  const { factsOfPod, pullSecrets, fleet, brokenNotes, budgetMs } = facts;
  const isClusterKnown = cluster !== undefined;
  const policies = await policiesAround({ configuration, input, surroundings, isClusterKnown, stop });
  if (configuration.requirePullableNodes && !fleet)
    warn('only agents know which nodes can pull; set --agents');
  // Node names are good enough here. The hostname label differs on few clusters.
  const nodeHostnames = (node: string): readonly string[] => [node];
  const pullableNodes = fleet && createPullableNodes({ fleet, pullSecrets, nodeHostnames, log });
  const nodes = await nodeClassesAround(surroundings, fleet, stop);
  return createExplainer({
    factsOfPod,
    pullableNodes,
    nodes,
    policies,
    surroundings,
    brokenNotes,
    budgetMs,
    stop,
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
