/** `archwright explain`: what the webhook would do to objects, and why, by the webhook's own steps. */
import { setMaxListeners } from 'node:events';
import { stringify } from 'yaml';
import { concurrently } from '../src/async/concurrently.ts';
import { parseObjects, readText, type FoundObject } from './objects/documents.ts';
import { describe, resultOf } from './explain/describe.ts';
import { createExplainer, isAdmitted, isLookedUp, type Explanation } from './explain/explainer.ts';
import { sortObjects, type Input } from './objects/input.ts';
import { parseNamedObjects, readNamedObjects } from './explain/named-objects.ts';
import { readNodeClasses, readPolicies } from './explain/policies.ts';
import { lookupFlags, openPodFacts } from './lookups/pod-facts.ts';
import { openCluster, openOptionalCluster, type OptionalCluster } from './wiring/cluster.ts';
import type { Kubernetes } from './wiring/kubernetes.ts';
import { untilStopped } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { choice, list, text, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { cell, print } from './program/table.ts';

const flags = {
  ...lookupFlags,
  filename: list('FILE', 'YAML or JSON with objects; `-`: standard input. Can be repeated.', { short: 'f' }),
  namespace: text(
    'NAME',
    'Namespace of named objects, and of objects in files without a namespace. Default: that of the kubeconfig context.',
    { short: 'n' },
  ),
  output: choice(['table', 'json', 'yaml'], 'Output format.', { short: 'o' }),
  patch: toggle('Adds the webhook’s JSON patch and the result.'),
};

type Call = Invocation<typeof flags>;

export const subcommand: Subcommand<typeof flags> = {
  usage: '[FLAGS] [-f FILE…] [KIND/NAME… | KIND NAME…]',
  description:
    'Shows the decision for pods and workloads in files (`-f`) or in the cluster (`pod/web-0`, ' +
    '`deploy/web`), as if they were created now: each rule by name, and for each image its ' +
    'architectures, their source and the credential. A workload gets the decision of its pods. For objects in the cluster it first shows the ' +
    'decision at their creation. Namespaces and custom resources in the same files ' +
    'count, and with `--local` Secrets and service accounts. Everything else comes from the cluster of your kubeconfig, if there is one, including ' +
    'archwright’s settings; archwright’s controller there looks up the images. Exit code: 0 if ' +
    'everything would be admitted, 1 if something would be denied or is invalid, 2 for wrong usage, 3 if ' +
    'an object could not be read or images could not be looked up.',
  settings: 'explain',
  flags,
  run: untilStopped(run),
};

/** Objects explained at a time. A chart has some dozens, and their images share registries. */
const concurrentObjects = 8;
/** archwright's Lease and records, which few people may read. Any other object gets a warning. */
const ofArchwright = /\/(?:leases|configmaps)$/;

const yamlOptions = { aliasDuplicateObjects: false, lineWidth: 0 };

async function run(invocation: Call): Promise<number> {
  const { io, say, stop } = invocation;
  const { output, patch } = invocation.flags;
  const named = parseNamedObjects(invocation.positionals);
  const inFiles = await readObjects(invocation, named.length > 0);
  let hasProblem = false;
  const onProblem = (message: string): void => {
    hasProblem = true;
    say(message);
  };
  await using opened = new AsyncDisposableStack();
  const open = named.length > 0 ? openCluster : openOptionalCluster;
  const cluster: OptionalCluster = await open(invocation, opened);
  const { kubernetes } = cluster;
  const namespace = namespaceOf(invocation, kubernetes, named.length > 0);
  const inCluster = kubernetes
    ? await readNamedObjects(named, kubernetes.client, namespace, stop, onProblem)
    : [];
  const input = sortObjects([...inFiles, ...inCluster], namespace);
  const warn = (message: string): void => say(message, 'warning');
  for (const { request, name, place } of input.skipped)
    warn(`${place}: skipped ${cell(request.kind.kind)} ${cell(name)}: it has no pods`);
  for (const place of input.unclear) warn(`${place}: not a Kubernetes object: it has no kind`);
  const isEmpty = input.subjects.length === 0 && input.unclear.length === 0;
  if (isEmpty && hasProblem) return exitCodes.unanswered;
  if (isEmpty) throw new UsageError('the input contains no pod and no workload');
  setMaxListeners(0, stop);
  const opening = openExplainer(invocation, cluster, input, onProblem, opened);
  const { explainer, lookups, insideCluster } = await opening;
  const explanations = await concurrently(input.subjects, concurrentObjects, explainer);
  const document = { lookups, results: explanations.map((each) => resultOf(each, patch)) };
  const tables = explanations.map((each) => describe(each, patch)).join('\n');
  print(
    invocation,
    document,
    output === 'yaml' ? stringify(document, yamlOptions) : `${tables}\nImages: looked up ${lookups}.\n`,
  );
  const isTerse = insideCluster !== undefined && explanations.some(lacksDetail);
  if (output === 'table' && isTerse && named.length > 0) {
    const objects = invocation.positionals.join(' ');
    io.out(`What the registry answered: ${insideCluster} explain -n ${namespace} ${objects}\n`);
  }
  if (hasProblem) return exitCodes.unanswered;
  const isAllRight = input.unclear.length === 0 && explanations.every(isAdmitted);
  if (!isAllRight) return exitCodes.failure;
  return explanations.every(isLookedUp) ? exitCodes.success : exitCodes.unanswered;
}

/** A pod has no context that a person chose: the default would be the pod's own namespace. */
function namespaceOf({ flags }: Call, kubernetes: Kubernetes | undefined, isNamed: boolean): string {
  const given = flags.namespace;
  if (given === undefined && isNamed && kubernetes?.podNamespace !== undefined)
    throw new UsageError('set the namespace of the objects by -n: a pod has no kubeconfig context');
  return given ?? kubernetes?.access.namespace ?? 'default';
}

async function readObjects({ flags, io }: Call, areNamed: boolean): Promise<readonly FoundObject[]> {
  const files = flags.filename;
  if (files.length === 0 && !areNamed)
    throw new UsageError(
      'name a file (-f FILE, or -f - for standard input) or an object of the cluster (pod/web-0)',
    );
  return (await Array.fromAsync(files, async (file) => parseObjects(await readText(file, io.stdin)))).flat();
}

async function openExplainer(
  invocation: Call,
  cluster: OptionalCluster,
  input: Input,
  onProblem: (message: string) => void,
  opened: AsyncDisposableStack,
) {
  const { configuration } = cluster.context;
  const { say, stop } = invocation;
  const warn = (message: string): void => say(message, 'warning');
  const onForbidden = (path: string): void => {
    if (!ofArchwright.test(path)) warn(`no permission to read ${path}; the decision ignores it`);
  };
  const facts = await openPodFacts({ invocation, cluster, input, onForbidden, onProblem }, opened);
  const { podContext, fleet, agentsAnswer } = facts;
  const policies = await readPolicies({ configuration, input, podContext, agentsAnswer, stop });
  if (facts.lookupsBy === 'controller' && input.secrets.size + input.serviceAccounts.size > 0)
    warn('Secrets and service accounts in files are not sent to the cluster; --local uses them');
  if (configuration.requirePullableNodes && !fleet)
    warn("only agents know which nodes can pull; run explain in the controller's pod, or set --agents");
  const nodes = await readNodeClasses(podContext, fleet, stop);
  return { ...facts, explainer: createExplainer({ ...facts, nodes, policies, stop }) };
}

/** Whether the reason for an unknown image is hidden: the public text has no endpoint. */
function lacksDetail({ outcome }: Explanation): boolean {
  if ('error' in outcome) return false;
  return outcome.decision.images.some(
    ({ facts }) =>
      facts?.error && facts.error.hint === undefined && facts.endpoint === '' && facts.source !== 'override',
  );
}
