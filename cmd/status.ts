/** `archwright status`: whether archwright works as configured, and what does not. */
import { createScrape } from './installation/scrape.ts';
import { collectStatus } from './status/collect.ts';
import { describeStatus, findingsOf } from './status/describe.ts';
import { connect, findNamespace } from './wiring/cluster.ts';
import { untilStopped } from './program/context.ts';
import { exitCodes } from './program/exit.ts';
import { choice, text, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { showAgain } from './program/terminal.ts';

const flags = {
  namespace: text('NAME', 'Namespace of archwright. Default: the one that is found.', { short: 'n' }),
  watch: toggle('Updates the output every two seconds, until you stop it.', { short: 'w' }),
  output: choice(['table', 'json'], 'Output format.', { short: 'o' }),
};

type Call = Invocation<typeof flags>;

export const subcommand: Subcommand<typeof flags> = {
  usage: '[FLAGS]',
  description:
    'Shows whether archwright works as configured: replicas, leader, versions and configuration; ' +
    'webhooks and certificates; agents; gated and misplaced pods; taints that are held back; broken ' +
    'images; credentials that nodes do not use. It reads objects of the cluster with your rights, and ' +
    'the metrics of replicas through the API server, and lists what it could not read. Exit code: 0 if ' +
    'there is nothing to look at, 1 if there is, 2 for wrong usage, 3 if the cluster does not answer.',
  settings: 'status',
  flags,
  run: untilStopped(run),
};

async function run(invocation: Call): Promise<number> {
  const { flags, stop: signal } = invocation;
  await using opened = new AsyncDisposableStack();
  const { own, kubernetes } = await connect(invocation, opened);
  const { configuration } = own;
  const { client } = kubernetes;
  const scrape = createScrape(kubernetes);
  return await showAgain(invocation, async () => {
    const given = flags.namespace ?? configuration.namespace;
    const namespace = given ?? (await findNamespace(kubernetes, configuration, signal));
    const collected = await collectStatus({ client, namespace, scrape, signal });
    const { status, installation, configurationProblems } = collected;
    const now = client.serverNow();
    const findings = findingsOf(status, installation, configurationProblems, now);
    return {
      document: { ...status, findings },
      text: describeStatus(status, findings, now),
      code: findings.length === 0 ? exitCodes.success : exitCodes.failure,
    };
  });
}
