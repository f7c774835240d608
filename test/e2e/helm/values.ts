/** Values of the chart for the cluster of this test: where its nodes keep their plugins, and which Secrets hold credentials. */
import { pluginConfig, pluginDirectory } from './node.ts';
import { realNode, type World } from './world.ts';

/** How long a gated pod waits at most; five minutes are too long for a test. */
export const maxGateMs = 20_000;

export function cardValues({ own, registries }: World): object {
  return {
    kubeletConfig: { config: pluginConfig, binDir: pluginDirectory },
    registryCredentials: { [registries.hosts.team]: { existingSecret: 'team-login' } },
    schedulableArchitectures: ['amd64', 'arm64', 's390x'],
    preferredArchitecture: 'amd64',
    maxGateDuration: `${maxGateMs / 1000}s`,
    ...onRealNode(own),
  };
}

/** What this cluster needs: where the image is, and which node can really run it. */
export function onRealNode(own: World['own']): object {
  return {
    image: own,
    global: { nodeSelector: realNode },
    agent: { nodeSelector: realNode },
  };
}
