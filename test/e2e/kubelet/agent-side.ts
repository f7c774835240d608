/** The agent's side of a case: inspections on the same node with the same pull secrets. */
import { openInspection } from '../../../cmd/wiring/inspection.ts';
import { CredentialError, type MatchedCredential } from '../../../src/credentials/credential.ts';
import { createPullSecretSource } from '../../../src/credentials/sources/pull-secrets.ts';
import { InvalidReference, parseReference } from '../../../src/images/references/reference.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { observed, referenceOf, type Observation, recordedRuns } from './recorder.ts';
import type { Registries } from './registries.ts';
import { binDir, type PodCase, type Setup } from './setup.ts';
import { silentLog } from '../../support/captured.ts';

export type AgentSide = Awaited<ReturnType<typeof openAgentSide>>;

/** As for a pod of the kubelet. */
const deadlineMs = 60_000;

export async function openAgentSide(
  { hostRoot, plugins, serviceAccountTokens = false }: Setup,
  registries: Registries,
  kubeconfig: string,
) {
  const configuration = {
    ...defaultConfiguration(),
    hostRoot,
    caFiles: [registries.caFile],
    serviceAccountTokens,
    kubeconfig,
    ...(plugins !== undefined && {
      [plugins.isDirectory ? 'kubeletConfig.configDir' : 'kubeletConfig.config']: plugins.config,
      'kubeletConfig.binDir': binDir,
    }),
  };
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs: 'node',
    env: {},
    log: silentLog,
  });

  async function inspect(pod: PodCase, image: string): Promise<Pick<Observation, 'outcome' | 'message'>> {
    try {
      const reference = parseReference(image);
      const pullCredentials = await matching(pod, reference.repository);
      const facts = await inspection.source.lookup(
        {
          image,
          reference,
          maxAgeMs: 0,
          pullCredentials,
          serviceAccount: { namespace: 'default', name: pod.serviceAccount ?? 'default' },
        },
        { signal: AbortSignal.timeout(deadlineMs) },
      );
      return { outcome: [facts.error?.code ?? 'pulled'], message: facts.error?.message ?? '' };
    } catch (error) {
      if (error instanceof InvalidReference)
        return { outcome: ['invalid-reference'], message: error.message };
      if (error instanceof CredentialError) return { outcome: ['malformed-secret'], message: error.message };
      throw error;
    }
  }

  return {
    run: async (pod: PodCase): Promise<Observation[]> => {
      const observations: Observation[] = [];
      for (const { image } of pod.images) {
        const from = performance.timeOrigin + performance.now();
        const end = await inspect(pod, image);
        const to = performance.timeOrigin + performance.now();
        const span = { side: 'agent', reference: referenceOf(image), from, to } as const;
        observations.push({
          image,
          ...observed(span, { runs: recordedRuns(), seen: registries.seen() }),
          ...end,
        });
      }
      return observations;
    },
    refresh: async (): Promise<void> => {
      for (const { source } of inspection.sources) await source.refresh();
    },
    close: (): Promise<void> => inspection.close(),
  };
}

/** The credentials of a pod's pull secrets, as the webhook sends them along. */
function matching(pod: PodCase, repository: string): Promise<readonly MatchedCredential[]> {
  const secrets = pod.secrets.flatMap(({ data, type = 'Opaque' }, index) => {
    if (data === undefined) return [];
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const metadata = { namespace: 'default', name: `${pod.name}-${index}` };
    return [{ metadata, type, data: Object.fromEntries(encoded) as Record<string, string> }];
  });
  return createPullSecretSource(secrets).lookup(repository);
}
