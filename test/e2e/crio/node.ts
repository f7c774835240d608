/** Runs cases on a node: writes its files, lets CRI-O's library pull and the agent inspect, and observes both. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFiles } from '../../support/write-files.ts';
import { makeStock, type NodeFiles } from '../node/case.ts';
import { inspectOnNode } from '../node/nodes.ts';
import type { World } from '../node/world.ts';
import type { Case } from './generate.ts';
import { startLibrary } from './library.ts';
import { observe, outcomeOfFacts, outcomeOfPull } from './observed.ts';
import type { Compared } from './rules.ts';

const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const bundle = '/etc/ssl/certs/ca-certificates.crt';

export function createNode(program: string, world: World) {
  const agent = createAgentSide(world);
  const { root } = agent;
  const library = startLibrary(program, {
    ...world.env,
    HOME: join(root, 'root'),
    SSL_CERT_FILE: root + bundle,
  });
  return {
    /** @param number of the case, for the name of its repository */
    run: async (about: Case, number: number): Promise<Compared> => {
      const { image, object } = agent.arrange(about, number);
      const environment = Object.entries(about.environment).map(([name, path]) => [name, root + path]);
      const pulled = await library.pull({
        root,
        image,
        authFile: about.globalAuthFile && root + about.globalAuthFile,
        user: about.login?.username ?? '',
        password: about.login?.password ?? '',
        ambiguous: about.shortNameMode === 'disabled',
        environment: Object.fromEntries(environment) as Record<string, string>,
      });
      const crio = observe(world.records, object, outcomeOfPull(pulled));
      return { case: about, image, crio, ...(await agent.inspect(about, number)) };
    },
    close: async (): Promise<void> => {
      await library.close();
      agent.close();
    },
  };
}

/** The agent alone, on a node with CRI-O. */
export function createAgentSide(world: World) {
  const root = mkdtempSync(join(base, 'archwright-crio-'));
  writeFiles(root, { [bundle]: world.publicCa });
  /** Writes the files of a case and sets the registries. @returns its image, and the tag or digest that is requested */
  function arrange(about: Case, number: number): { image: string; object: string } {
    const repository = `team/c${number}`;
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true });
    writeFiles(root, { [bundle]: world.publicCa, ...filesOf(about, repository) });
    const { stock, digest } = makeStock(repository, about.image);
    const end = { tag: ':1', digest: `@${digest}`, both: `:1@${digest}` }[about.by];
    world.arrange({ ...stock, scopeOfPath: true }, about.behaviors);
    const image = `${about.domain === '' ? '' : `${about.domain}/`}${repository}${end}`;
    return { image, object: about.by === 'tag' ? '1' : digest };
  }
  return {
    root,
    arrange,
    inspect: async (about: Case, number: number): Promise<Pick<Compared, 'agent' | 'problems'>> => {
      const { image, object } = arrange(about, number);
      const configuration = {
        hostRoot: root,
        runtime: 'cri-o' as const,
        // The kubelet's credential is the case's own; on a node, these files are the kubelet's too.
        dockerConfigPathCandidates: ['/none.json'],
      };
      const { env } = world;
      const { facts, problems } = await inspectOnNode({ configuration, env, image, login: about.login });
      return { agent: observe(world.records, object, outcomeOfFacts(facts)), problems };
    },
    close: (): void => rmSync(root, { recursive: true }),
  };
}

/** The files of a case, with those of CRI-O and its service. */
function filesOf({ files, globalAuthFile, shortNameMode, environment }: Case, repository: string): NodeFiles {
  const variables = Object.entries(environment).map(([name, path]) => `Environment=${name}=${path}`);
  const all = {
    '/etc/crio/crio.conf': `[crio.image]\nshort_name_mode = "${shortNameMode}"\n`,
    '/etc/crio/crio.conf.d/10-auth': `[crio.image]\nglobal_auth_file = "${globalAuthFile}"\n`,
    '/usr/lib/systemd/system/crio.service': ['[Service]', ...variables, ''].join('\n'),
    ...files,
  };
  const written = Object.entries(all).map(([path, text]) => [
    path,
    text.replaceAll('REPOSITORY', repository),
  ]);
  return Object.fromEntries(written) as NodeFiles;
}
