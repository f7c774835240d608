/** Runs cases on a node: writes files, lets containerd pull and the agent inspect, and observes both. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeStock, openRegistry, type Case, type NodeFiles } from './case.ts';
import type { ContainerdProgram } from '../programs/containerd.ts';
import { prepareNode, startContainerd, type RunningContainerd } from './containerd.ts';
import { observe, outcomeOfFacts, outcomeOfPull } from './observed.ts';
import type { Compared } from './rules.ts';
import type { World } from './world.ts';
import { writeFiles } from '../../support/write-files.ts';
import { openInspection } from '../../../cmd/wiring/inspection.ts';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { parseReference, shortNameOf } from '../../../src/images/references/reference.ts';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import type { PullAuth } from './cri.ts';
import { silentLog } from '../../support/captured.ts';

export type Node = ReturnType<typeof createNode>;

const hostDirectories = ['etc/containerd', 'etc/docker'] as const;

/** In memory containerd's database is several times faster. */
const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export function createNode(program: ContainerdProgram, world: World, certificates: NodeFiles) {
  const agent = createAgentSide(program.version, world, certificates);
  const { root } = agent;
  prepareNode(root);
  let running: { readonly key: string; readonly containerd: RunningContainerd } | undefined;
  let warm = false;

  async function containerdFor(about: Case): Promise<RunningContainerd> {
    const key = JSON.stringify(about.configuration);
    if (running?.key === key) return running.containerd;
    await running?.containerd.stop();
    running = undefined;
    const containerd = await startContainerd({ program: program.path, node: root, env: world.env });
    running = { key, containerd };
    return containerd;
  }

  /** Pulls the layer that all images share: no case needs a registry for it. */
  async function warmUp(containerd: RunningContainerd): Promise<void> {
    if (warm) return;
    const host = world.places.plain;
    world.arrange(makeStock('team/first', 'single').stock, new Map([[host, openRegistry]]));
    const { error } = await containerd.cri.pull(`${host}/team/first:1`, undefined);
    if (error) throw new Error(`the first image cannot be pulled: ${error.message}`);
    warm = true;
  }

  return {
    /** @param number of the case, for the name of its repository */
    run: async (about: Case, number: number): Promise<Compared> => {
      if (!warm) {
        agent.write({
          ...about,
          configuration: { '/etc/containerd/config.toml': 'version = 2\n' },
          hosts: {},
        });
        await warmUp(await containerdFor({ ...about, configuration: {} }));
      }
      agent.write(about);
      const containerd = await containerdFor(about);
      const { image, object } = arrange(world, about, number);
      const pulled = outcomeOfPull(await containerd.cri.pull(image, about.auth));
      const theirs = observe(world.records, object, pulled);
      return { case: about, containerd: theirs, agent: await agent.inspect(about, number) };
    },
    close: async (): Promise<void> => {
      await running?.containerd.stop();
      agent.close();
    },
  };
}

/** Sets the registries for a case. @returns its image, and the tag or digest that is requested */
function arrange(world: World, about: Case, number: number): { image: string; object: string } {
  const repository = `team/c${number}`;
  const { stock, digest } = makeStock(repository, about.image);
  const end = { tag: ':1', digest: `@${digest}`, both: `:1@${digest}` }[about.by];
  world.arrange(stock, about.behaviors);
  return { image: `${about.domain}/${repository}${end}`, object: about.by === 'tag' ? '1' : digest };
}

/** The agent alone on a node with this version of containerd. */
export function createAgentSide(containerdVersion: string, world: World, certificates: NodeFiles) {
  const root = mkdtempSync(join(base, 'archwright-node-'));
  return {
    root,
    write: (about: Pick<Case, 'configuration' | 'hosts'>): void => {
      for (const directory of hostDirectories)
        rmSync(join(root, directory), { recursive: true, force: true });
      writeFiles(root, { ...certificates, ...about.configuration, ...about.hosts });
    },
    inspect: async (about: Case, number: number): Promise<Compared['agent']> => {
      const { image, object } = arrange(world, about, number);
      const configuration = { hostRoot: root, containerdVersion };
      const { facts } = await inspectOnNode({ configuration, env: world.env, image, login: about.auth });
      return observe(world.records, object, outcomeOfFacts(facts));
    },
    close: (): void => rmSync(root, { recursive: true, force: true }),
  };
}

/** No fault of these tests delays a response. */
const timeoutMs = 20_000;

/** Opens the node's files as an agent does, inspects once, and closes all. */
export async function inspectOnNode(options: {
  readonly configuration: Partial<Configuration>;
  /** Proxy variables of the container runtime. */
  readonly env: Readonly<Record<string, string>>;
  readonly image: string;
  /** What the kubelet has for the image. */
  readonly login: PullAuth | undefined;
}): Promise<{ readonly facts: ImageFacts; readonly problems: readonly string[] }> {
  const { env, image, login } = options;
  const configuration = { ...defaultConfiguration(), ...options.configuration };
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs: 'node',
    env,
    log: silentLog,
  });
  try {
    const reference = parseReference(image);
    const shortName = shortNameOf(image);
    const credential = login && { username: login.username, password: secret(login.password) };
    const key = reference.domain;
    const place = { source: 'pull-secret', key, origin: 'default/pull', id: JSON.stringify(login) } as const;
    const pullCredentials = credential ? [{ credential, ...place }] : [];
    const facts = await inspection.source.lookup(
      { image, reference, maxAgeMs: 0, pullCredentials, ...(shortName !== undefined && { shortName }) },
      { signal: AbortSignal.timeout(timeoutMs) },
    );
    const problems = inspection.problems().map(({ origin, message }) => `${origin}: ${message}`);
    return { facts, problems };
  } finally {
    await inspection.close();
  }
}
