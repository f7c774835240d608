/** `archwright agent`: runs the node agent. */
import { hostname } from 'node:os';
import { startAgent } from '../daemon/agent.ts';
import { openInspection } from './inspection.ts';
import { openMemory } from './memory.ts';
import { startup } from './startup.ts';
import { exitCodes, UsageError, type Invocation, type Subcommand } from './subcommand.ts';
import { stopped } from './signals.ts';
import { programVersion } from './version.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS]',
  description:
    'Answers the webhook and the controller about images, with the credentials and the network of the node that it runs ' +
    'on. It needs `--tls-dir`: a directory with `tls.crt` and `tls.key` for the name archwright-agent, and `ca.crt`.',
  settings: 'agent',
  flags: {},
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { configuration: live, log, metrics } = await startup(invocation);
  const configuration = live.current();
  try {
    if (configuration.tlsDir === undefined) {
      throw new UsageError('agent', 'name the directory with tls.crt, tls.key and ca.crt by --tls-dir');
    }
    const inspection = await openInspection({
      configuration: () => live.current(),
      dockerConfigs: 'node',
      env: invocation.io.env,
      log,
      metrics,
    });
    const memory = await openMemory({
      configuration: () => live.current(),
      inspector: inspection.inspector,
      stateDir: configuration.stateDir,
      log,
      metrics,
    });
    try {
      const agent = await startAgent({
        listen: configuration.listen,
        metricsListen: configuration.metricsListen,
        tlsDir: configuration.tlsDir,
        nodeName: configuration.nodeName ?? hostname(),
        version: programVersion.version,
        memory,
        fingerprint: () => inspection.fingerprint(),
        limits: { concurrentImages: configuration.agentConcurrency },
        log,
        metrics,
      });
      await stopped(invocation.stop);
      await agent.stop(live.current().drainTime);
    } finally {
      await memory.close();
      await inspection.close();
    }
  } finally {
    await live.close();
  }
  return exitCodes.success;
}
