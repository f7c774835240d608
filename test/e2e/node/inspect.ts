/** The agent's side: inspects an image on this node with the credential of a pod's pull secret. */
import { openInspection } from '../../../cmd/wiring/inspection.ts';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import type { PullAuth } from './cri.ts';

/** No fault of these tests makes an answer wait. */
const timeoutMs = 20_000;

/** Opens the node's files, inspects once and closes everything. @param env proxy variables of the container runtime */
export async function inspectOnNode(options: {
  readonly node: string;
  /** Of containerd. An agent asks the node's program for it. */
  readonly version: string;
  readonly env: Readonly<Record<string, string>>;
  readonly image: string;
  readonly auth: PullAuth | undefined;
}): Promise<ImageFacts> {
  const { node, version, env, image, auth } = options;
  const configuration = { ...defaultConfiguration(), hostRoot: node, containerdVersion: version };
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs: 'node',
    env,
    log: createLog({ level: 'silent' }),
  });
  try {
    const pullCredentials = auth
      ? [
          {
            credential: { username: auth.username, password: secret(auth.password) },
            source: 'pull-secret' as const,
            key: image.slice(0, image.indexOf('/')),
            origin: 'default/pull',
            id: JSON.stringify(auth),
          },
        ]
      : [];
    const reference = parseReference(image);
    return await inspection.inspector.lookup(
      { image, reference, pullPolicy: 'Always', pullCredentials },
      { signal: AbortSignal.timeout(timeoutMs) },
    );
  } finally {
    await inspection.close();
  }
}
