/**
 * README.md as a reader follows it: a shell runs each command of its blocks unchanged, in a folder with the
 * chart, the image and `values.yaml`. The only replacement is the registry, which has a port here.
 */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { helmEnvironment } from '../chart/helm.ts';
import { runCommand, type Outcome } from '../helm/release.ts';
import type { World } from '../helm/world.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const registry = 'registry.example.com';
const fence = /^```(\w+)\n([^]*?)^```$/gm;

/** Commands that need another machine or a network, or that other suites run. */
const elsewhere = [
  'npm ',
  'npx ',
  'docker ',
  'kind ',
  'kubectl apply ',
  'kubectl wait ',
  'helm install archwright charts/archwright -n archwright --create-namespace -f examples/kind/values.yaml',
];

export type Readme = ReturnType<typeof openReadme>;

/** @param layout folder with our image, as `npm run image` leaves it in `dist/image/oci` */
export function openReadme({ cluster, programs, registries }: World, layout: string) {
  const text = readFileSync(join(project, 'README.md'), 'utf8').replaceAll(registry, registries.hosts.public);
  const blocks = [...text.matchAll(fence)].map(([, language = '', body = '']) => ({ language, body }));
  const commands = blocks
    .filter(({ language }) => language === 'sh')
    .flatMap(({ body }) =>
      body
        .replaceAll(/\\\n\s*/g, '')
        .trim()
        .split('\n'),
    )
    .filter((each) => !elsewhere.some((start) => each.startsWith(start)));
  const left = new Set(commands);

  const home = '/tmp/first-hour';
  const bin = join(home, 'bin');
  mkdirSync(join(home, 'dist', 'image'), { recursive: true });
  mkdirSync(bin);
  symlinkSync(layout, join(home, 'dist', 'image', 'oci'));
  symlinkSync(join(project, 'charts'), join(home, 'charts'));
  const launcher = join(project, 'cmd', 'archwright.js');
  const links = { helm: programs.helm4, kubectl: programs.kubectl, skopeo: programs.skopeo };
  for (const [name, program] of Object.entries(links)) symlinkSync(program, join(bin, name));
  for (const name of ['archwright', 'kubectl-archwright']) symlinkSync(launcher, join(bin, name));
  const env = {
    ...helmEnvironment(home, cluster.kubeconfig),
    PATH: [bin, dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
  };

  const sh = (command: string): Promise<Outcome> =>
    runCommand('/bin/sh', ['-c', command], env, { cwd: home });

  return {
    home,
    sh,
    /** Runs the command with this start. @throws Error if README.md has none, or several */
    run: (start: string): Promise<Outcome> => {
      const found = [...new Set(commands.filter((each) => each.startsWith(start)))];
      if (found.length !== 1 || found[0] === undefined)
        throw new Error(`README.md has ${found.length} commands "${start}…"`);
      left.delete(found[0]);
      return sh(found[0]);
    },
    /** Writes `values.yaml`, as in README.md. @param more additions of this part */
    writeValues: (more: object = {}): void => {
      const body = blocks.find(({ language }) => language === 'yaml')?.body ?? '';
      if (!body.startsWith('# values.yaml')) throw new Error('the first block of YAML is not values.yaml');
      writeFileSync(join(home, 'values.yaml'), stringify({ ...(parse(body) as object), ...more }));
    },
    /** Commands of README.md that were not run. */
    left: (): readonly string[] => [...left],
  };
}

/** @returns its output @throws Error for another exit code */
export function expectCode({ code, text }: Outcome, expected: number): string {
  if (code !== expected) throw new Error(`exit code ${code}, not ${expected}: ${text}`);
  return text;
}
