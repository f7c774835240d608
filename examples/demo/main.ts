/**
 * `npm run demo`: from a pod to its placement on one machine. It starts registries, a part of the Kubernetes
 * API, two node agents and the webhook on loopback, and sends `examples/pods` like an API server. It shows a
 * line for each pod; with `--verbose` also facts and patch. It fails if a result is not as expected.
 *
 * `setup.ts` starts everything, `rounds.ts` sends the examples, `summary.ts` and `details.ts` show them,
 * `stay.ts` keeps it running. Agents and webhook are the real program in own processes.
 */
import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { onStopSignal } from '../../cmd/program/exit.ts';
import { createApiServer } from './admit.ts';
import { startCluster } from './cluster.ts';
import { printServers } from './details.ts';
import { DemoError } from './error.ts';
import { readExamples, type Example } from './examples.ts';
import { askAgents } from './knowledge.ts';
import { heading, print } from './print.ts';
import { firstRound, secondRound } from './rounds.ts';
import { setUp, type Setup } from './setup.ts';
import { stay } from './stay.ts';
import { openWorkspace, type Workspace } from './workspace.ts';

/** Usually some seconds; a busy machine may need minutes. */
const timeLimitMs = 600_000;

const processEndMs = 3000;

const help = `Usage: npm run demo [-- --verbose] [--stay]

Starts registries, two node agents and the webhook on free ports of 127.0.0.1, sends the pods of examples/pods as an
API server would, and shows each decision and its reason. Exit code 1 if a result is not as expected.

  --verbose  Shows what runs, and for each pod its image facts, the rules that applied and the JSON patch.
  --stay     Keeps running and prints how to send a further review. Ctrl-C ends it.
  --help     Prints this.
`;

/** A signal ended the demo. */
class Interrupted extends Error {}

interface Shown {
  readonly examples: readonly Example[];
  readonly setup: Setup;
}

async function show(workspace: Workspace, verbose: boolean): Promise<Shown> {
  const examples = await readExamples();
  const kubeconfig = await startCluster(workspace, {
    namespaces: new Set(examples.map(({ request }) => request.namespace ?? 'default')),
    secrets: examples.flatMap(({ secrets }) => secrets),
  });
  const setup = await setUp(workspace, kubeconfig);
  const { registries, servers, configFile } = setup;
  heading(
    'archwright demo: 3 registries, 2 node agents and the webhook on 127.0.0.1; nothing leaves this machine',
  );
  if (verbose) printServers(servers, registries);
  const urls = [...servers.agents.values()].map(({ url }) => url);
  const connecting = askAgents({ configFile, urls, agentTlsDir: servers.agentTlsDir });
  const agents = await unlessEnded(connecting, servers.failed);
  workspace.onClose(() => agents.close());
  const apiServer = createApiServer({ url: servers.webhook.url, ca: servers.webhookCa });
  workspace.onClose(() => apiServer.close());
  const rounds = { examples, apiServer, agents, registries, servers, verbose };
  await unlessEnded(
    firstRound(rounds).then((answers) => secondRound(rounds, answers)),
    servers.failed,
  );
  print(
    `\nAll as expected.${verbose ? '' : ' Facts, rules and patches of each pod: npm run demo -- --verbose'}`,
  );
  return { examples, setup };
}

/** An ended process is the cause of the failure, and may be reported a moment later. */
function unlessEnded<T>(work: Promise<T>, failed: Promise<never>): Promise<T> {
  const told = work.catch(async (error: unknown) => {
    await Promise.race([failed, pause(processEndMs)]);
    throw error;
  });
  return Promise.race([told, failed]);
}

/** Rejects when there is a reason to end early, until `shown` aborts. */
function untilInterrupted(stop: AbortSignal, shown: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    stop.addEventListener('abort', () => reject(new Interrupted(String(stop.reason))), { signal: shown });
    AbortSignal.any([AbortSignal.timeout(timeLimitMs), shown]).addEventListener('abort', () => {
      reject(new DemoError(`did not end within ${timeLimitMs / 1000} s`));
    });
  });
}

async function main(args: readonly string[]): Promise<number> {
  const unknown = args.find((arg) => !['--verbose', '--stay', '--help', '-h'].includes(arg));
  if (unknown !== undefined) {
    process.stderr.write(`unknown argument ${unknown}\n\n${help}`);
    return 2;
  }
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(help);
    return 0;
  }
  const [staying, verbose] = [args.includes('--stay'), args.includes('--verbose')];
  const stop = onStopSignal();
  const workspace = await openWorkspace();
  try {
    const shown = new AbortController();
    const { examples, setup } = await Promise.race([
      show(workspace, verbose),
      untilInterrupted(stop, shown.signal),
    ]);
    shown.abort();
    if (staying) await stay(workspace, setup, examples, stop);
    return 0;
  } catch (error) {
    if (error instanceof Interrupted) return 128 + constants.signals[stop.reason as NodeJS.Signals];
    process.stderr.write(`demo: ${describe(error)}\n`);
    return 1;
  } finally {
    await workspace.close();
  }
}

/** An unexpected error is a bug, so it comes with its stack. */
function describe(error: unknown): string {
  if (error instanceof DemoError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

// The reader has closed the pipe: `npm run demo | head`. `exit` ends the children too.
process.stdout.on('error', () => process.exit(1));

const code = await main(process.argv.slice(2));
// Explicit exit, because an interrupted start could go on. Text may still be on its way into a pipe.
process.stdout.write('', () => process.exit(code));
