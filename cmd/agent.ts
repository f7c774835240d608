/** `archwright agent`: runs the node agent. With `--check`, prints what an agent would find on this node. */
import { hostname } from 'node:os';
import { startAgent } from '../daemon/agent.ts';
import { checkNode } from './agent/check.ts';
import { openInspection } from './wiring/inspection.ts';
import { openMemory } from './wiring/memory.ts';
import { untilStopped } from './program/cli-context.ts';
import { startup } from './program/startup.ts';
import { exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';
import { stopped } from './program/signals.ts';
import { programVersion } from './program/version.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS]',
  description:
    'Inspects images for the webhook and the controller, with the credentials and the network of its node. ' +
    'Requires `--tls-dir`: a directory with `tls.crt` and `tls.key` for the name archwright-agent, and `ca.crt`. ' +
    'Exit code of `--check`: 0 if everything could be used, 1 if something was left out, 2 for wrong usage.',
  settings: 'agent',
  flags: {
    check: {
      help:
        'Prints each source that an agent with these settings would find on this node, whether it can be used, and ' +
        'what the kubelet or containerd would do differently. Then exits.',
    },
    output: {
      value: 'list|json',
      short: 'o',
      help: 'Output format of `--check`. Default: list.',
    },
  },
  run: async (invocation) => {
    if (invocation.flags.has('check')) return untilStopped(invocation.stop, () => checkNode(invocation));
    if (invocation.flags.has('output')) throw new UsageError('agent', '--output needs --check');
    return run(invocation);
  },
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
