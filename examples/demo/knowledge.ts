/**
 * The agents' facts of an example's images, and the decision. The webhook answers with a patch alone, so the
 * demo sends the agents the same requests and decides the same way, to show why. Both must agree.
 */
import { openFleet } from '../../cmd/wiring/fleet.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { PodFactsRequest } from '../../src/cluster/facts-of-pod.ts';
import { placementOf } from '../../src/cluster/placement-of-pod.ts';
import { createPullSecretSource } from '../../src/credentials/sources/pull-secrets.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import type { AdmissionRequest, PodTemplate } from '../../src/kube/api/objects.ts';
import type { Operation, PlacementDecision } from '../../src/placement/decision.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { loadConfiguration } from '../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../src/policy/effective/policies.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { admittedPodOf, kindOf, type AdmittedPod } from '../../src/webhook/admitted-pod.ts';
import { namespaceLabels } from './cluster.ts';
import { DemoError } from './error.ts';
import type { Example } from './examples.ts';

export interface Knowledge {
  readonly decision: PlacementDecision;
  /** The resulting patch. */
  readonly operations: readonly Operation[];
}

export interface Agents {
  /** Looks up each image of an example that the decision needs. */
  explain(example: Example): Promise<Knowledge>;
  close(): Promise<void>;
}

/** Agents answer from memory; other facts show as unknown. */
const lookupTimeoutMs = 30_000;

export async function askAgents(options: {
  readonly configFile: string;
  readonly urls: readonly string[];
  readonly agentTlsDir: string;
}): Promise<Agents> {
  const { configFile, urls, agentTlsDir } = options;
  const { configuration } = await loadConfiguration({ file: configFile, env: {}, flags: {} });
  if (!configuration) throw new DemoError(`${configFile} is not a configuration`);
  const policy = policyFor(configuration, { mayGate: configuration.onUnknownImage === 'gate' });
  const log = createLog({ level: 'silent' });
  const opened = await openFleet({
    agents: urls,
    agentTlsDir,
    client: undefined,
    log,
    metrics: createMetrics(),
  });
  if (!opened) throw new DemoError('there are no agents to ask');
  const { fleet } = opened;
  // The fleet then knows which agents have the same credentials.
  await fleet.grouped(AbortSignal.timeout(lookupTimeoutMs));

  /** Of any age: the demo prints what agents know, and a request to the registry would show as another one. */
  const factsOf = async ({ secrets }: Example, { uses }: PodFactsRequest, pod: PodTemplate) => {
    const named = new Set(pod.spec.imagePullSecrets?.map(({ name }) => name));
    const source = createPullSecretSource(secrets.filter(({ metadata }) => named.has(metadata?.name)));
    const facts = new Map<string, ImageFacts>();
    for (const { image } of uses) {
      const reference = parseReference(image);
      const pullCredentials = await source.lookup(reference.repository);
      const request = { image, reference, maxAgeMs: Number.POSITIVE_INFINITY, pullCredentials };
      facts.set(image, await fleet.lookup(request, { signal: AbortSignal.timeout(lookupTimeoutMs) }));
    }
    return facts;
  };

  return {
    explain: async (example) => {
      const { request } = example;
      const { pod, pullSecrets, template, basePath } = podIn(request);
      const { namespace = '' } = request;
      const target = { pod, namespace, pullSecrets, ...(template !== undefined && { template }) };
      const { decision } = await placementOf(
        target,
        {
          policies: { policyOf: () => policy },
          namespaceLabels,
          factsOfPod: (ofPod) => factsOf(example, ofPod, pod),
          clock: systemClock,
        },
        { budgetMs: lookupTimeoutMs },
      );
      return { decision, operations: patchPod(pod, decision, basePath) };
    },
    close: () => opened.close(),
  };
}

/** The pod of a request, or the template of a workload's pods. */
export function podIn(request: AdmissionRequest): AdmittedPod {
  return admittedPodOf(request, kindOf(request));
}
