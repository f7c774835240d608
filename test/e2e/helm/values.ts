/** Values of the chart for this cluster: paths of credential provider plugins, and Secrets with credentials. */
import { pluginConfig, pluginDirectory } from './node.ts';
import { realNode, type World } from './world.ts';

/** The default of five minutes is too long for a test. */
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

/** The image, and the node that can run it. */
export function onRealNode(own: World['own']): object {
  return {
    image: own,
    global: { nodeSelector: realNode },
    agent: { nodeSelector: realNode },
  };
}
