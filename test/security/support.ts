/** For attack tests: a node with its own credential sources, opened as by the agent. */
import { chmodSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { openInspection } from '../../cmd/wiring/inspection.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { loadConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { answering, configText, writePlugin as writeProgram } from '../daemon/kubelet/support.ts';
import { captureLog } from '../support/captured.ts';
import { listen } from '../support/listen.ts';
import { neverAborted } from '../support/never-aborted.ts';

/** The configuration of one plugin. */
export const pluginConfig = (matchImages: readonly string[]): string =>
  configText({ name: 'plugin', matchImages });

/** A plugin that prints these credentials for every image. */
export function writePlugin(dir: string, auth: Readonly<Record<string, object>>): void {
  mkdirSync(dir, { recursive: true });
  writeProgram(join(dir, 'plugin'), answering({ auth }));
  chmodSync(dir, 0o755);
}

/** Opens all sources of a node, as the agent does. */
export async function openNode(t: Test, settings: Readonly<Record<string, string>>) {
  const sources = { file: undefined, env: {}, flags: settings, part: 'agent' } as const;
  const { configuration, problems } = await loadConfiguration(sources);
  if (!configuration) throw new TypeError(JSON.stringify(problems));
  const { log, lines } = captureLog();
  const current = (): Configuration => configuration;
  const inspection = await openInspection({ configuration: current, dockerConfigs: 'node', env: {}, log });
  t.teardown(() => inspection.close());
  return {
    inspection,
    lines,
    inspect: (image: string) =>
      inspection.source.lookup(
        { image, reference: parseReference(image), maxAgeMs: 0, pullCredentials: [] },
        { signal: neverAborted },
      ),
  };
}

/** A loopback port that counts connections, and closes each one. */
export async function startCountingListener(t: Test): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const listener = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  t.teardown(() => listener.close());
  return { port: await listen(listener), connections: () => connections };
}
