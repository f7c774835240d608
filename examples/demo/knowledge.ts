/**
 * The agents' facts of an example's images, and the decision. The webhook answers with a patch alone, so the
 * demo sends the agents the same requests and decides the same way, to show why. Both must agree.
 */
import { defaultFreshness } from '../../src/images/memory/freshness.ts';
import { openFleet } from '../../cmd/wiring/fleet.ts';
import { createPullSecretSource } from '../../src/credentials/sources/pull-secrets.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import type { AdmissionRequest, Pod, PodTemplate } from '../../src/kube/api/objects.ts';
import { decide } from '../../src/placement/decide.ts';
import type { Operation, PlacementDecision } from '../../src/placement/decision.ts';
import { imagesOf } from '../../src/placement/pod/images.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { skipReasonOf } from '../../src/placement/rules/skip.ts';
import { loadConfiguration } from '../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../src/policy/effective/effective.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { kindOf, placingOf, type Placing } from '../../src/webhook/workloads.ts';
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
    freshness: defaultFreshness,
    log,
    metrics: createMetrics(),
  });
  if (!opened) throw new DemoError('there are no agents to ask');
  const { fleet } = opened;
  // Only for its end: the fleet then knows which agents have the same credentials.
  for await (const _facts of fleet.shared(AbortSignal.timeout(lookupTimeoutMs)));

  async function factsOf({ secrets }: Example, pod: Pod | PodTemplate): Promise<Map<string, ImageFacts>> {
    const named = new Set(pod.spec.imagePullSecrets?.map(({ name }) => name));
    const source = createPullSecretSource(secrets.filter(({ metadata }) => named.has(metadata?.name)));
    const facts = new Map<string, ImageFacts>();
    for (const { image } of imagesOf(pod.spec)) {
      const reference = parseReference(image);
      const pullCredentials = await source.lookup(reference.repository);
      // Also for `Always`, which would send a request to the registry. The demo prints facts in memory.
      const request = { image, reference, pullPolicy: 'IfNotPresent', pullCredentials } as const;
      facts.set(image, await fleet.lookup(request, { signal: AbortSignal.timeout(lookupTimeoutMs) }));
    }
    return facts;
  }

  return {
    explain: async (example) => {
      const { request } = example;
      const { pod, template, basePath } = podIn(request);
      const namespace = request.namespace ?? '';
      const input = { pod, namespace, namespaceLabels: namespaceLabels(namespace), policy };
      const skipped = skipReasonOf(input, imagesOf(pod.spec)) !== undefined;
      const facts = skipped ? new Map<string, ImageFacts>() : await factsOf(example, pod);
      const decision = decide({
        ...input,
        facts: (image) => facts.get(image),
        ...(template !== undefined && { template }),
      });
      return { decision, operations: patchPod(pod, decision, basePath) };
    },
    close: () => opened.close(),
  };
}

/** The pod of a request, or the template of a workload's pods. */
export function podIn(request: AdmissionRequest): Placing {
  return placingOf(request, kindOf(request));
}
