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

export type Node = ReturnType<typeof createNode>;

const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export function createNode(program: string, world: World) {
  const root = mkdtempSync(join(base, 'archwright-crio-'));
  const bundle = '/etc/ssl/certs/ca-certificates.crt';
  writeFiles(root, { [bundle]: world.publicCa });
  const library = startLibrary(program, {
    ...world.env,
    HOME: join(root, 'root'),
    SSL_CERT_FILE: root + bundle,
  });
  let count = 0;
  return {
    run: async (about: Case): Promise<Compared> => {
      const repository = `team/c${(count += 1)}`;
      for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true });
      writeFiles(root, { [bundle]: world.publicCa, ...filesOf(about, repository) });
      const { stock, digest } = makeStock(repository, about.image);
      const object = about.by === 'tag' ? '1' : digest;
      const end = { tag: ':1', digest: `@${digest}`, both: `:1@${digest}` }[about.by];
      const image = `${about.domain === '' ? '' : `${about.domain}/`}${repository}${end}`;
      world.arrange({ ...stock, scopeOfPath: true }, about.behaviors);
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
      world.clear();
      const configuration = {
        hostRoot: root,
        runtime: 'cri-o' as const,
        // The kubelet's credential is the case's own; on a node, these files are the kubelet's too.
        dockerConfigPathCandidates: ['/none.json'],
      };
      const { env } = world;
      const { facts, problems } = await inspectOnNode({ configuration, env, image, login: about.login });
      const agent = observe(world.records, object, outcomeOfFacts(facts));
      return { case: about, image, crio, agent, problems };
    },
    close: async (): Promise<void> => {
      await library.close();
      rmSync(root, { recursive: true });
    },
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
