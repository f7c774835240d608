/**
 * The image of each architecture, unpacked and run: its output equals the source's, and webhook, agent and a
 * registry work together. Other architectures run by QEMU if installed (`apt-get install qemu-user-static`).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { architectures, baseImage } from './base.ts';
import { cache } from '../programs/cache.ts';
import { debianProgram } from '../programs/debian.ts';
import { chain } from './chain.ts';
import { command, emulator, machineCode, mountPath, unpack, type Unpacked } from './unpacked.ts';
import { like } from '../../support/like.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const entry = join(project, 'cmd/archwright.ts');
/** Under emulation, the program starts in about three seconds; a loaded machine needs more. */
const timeoutMs = 120_000;

/** Read once: the repository may change meanwhile. */
const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string };
const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: project, encoding: 'utf8' }).trim();

const files: Readonly<Record<string, string>> = {
  'good.toml': 'schedulableArchitectures = ["amd64", "arm64"]\npreferredArchitecture = "arm64"\n',
  'bad.toml': 'preferedArchitecture = "arm64"\n',
  'overrides.toml': '[[imageOverrides]]\nmatch = "registry.example/**"\narchitectures = ["s390x"]\n',
  'pod.yaml':
    'apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec: { containers: [{ name: web, image: registry.example/web:1 }] }\n',
  // Nothing listens there. A kubeconfig loads the Kubernetes library.
  kubeconfig: `apiVersion: v1
kind: Config
current-context: here
contexts: [{ name: here, context: { cluster: here, user: me } }]
clusters: [{ name: here, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: me, user: { token: nothing } }]
`,
};
const at = (file: string): string => `${mountPath}/${file}`;
const cases: readonly (readonly string[])[] = [
  ['config', 'check', at('good.toml')],
  ['config', 'check', at('bad.toml')],
  ['config', 'print', '--config', at('good.toml')],
  ['explain', '-f', at('pod.yaml'), '--patch', '--output', 'json', '--config', at('overrides.toml')],
  ['inspect', 'not a reference'],
  ['probe', '--kubeconfig', at('kubeconfig'), '--timeout', '1s'],
  ['completion', 'bash'],
  ['nonsense'],
  ...['webhook', 'agent', 'controller', 'clean'].map((name) => [name, '--help']),
  ['--help'],
  ['probe', '--timeout', 'soon'],
  ['webhook', '--nonsense'],
  ['webhook'],
  ['agent', '--tls-dir', '/nowhere'],
];

void t.test('the image', { timeout: 15 * 60_000 }, async (t) => {
  debianProgram('buildah');
  const layout = join(cache, 'image', 'both', 'oci');
  execFileSync(process.execPath, ['scripts/image.ts', '--base', baseImage(), '--output', layout], {
    cwd: project,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ARCHWRIGHT_COMMIT: commit },
  });
  for (const architecture of architectures) {
    const image = unpack(layout, architecture, join(t.testdir(), architecture));
    await t.test(`${architecture}: all machine code is for that architecture`, async (t) => {
      const found = machineCode(image);
      for (const path of ['/usr/local/bin/node', '/usr/sbin/chroot']) t.ok(found.has(path), path);
      t.ok(found.size > 8, [...found.keys()].join(' '));
      for (const [path, machine] of found) t.equal(machine, architecture, path);
    });
    const { missing } = emulator(architecture);
    const skip =
      missing !== undefined && `${missing} is not on the PATH, so linux/${architecture} is not run`;
    await t.test(`${architecture}: the image runs`, { skip }, (t) => runs(t, image));
  }
});

async function runs(t: Test, image: Unpacked): Promise<void> {
  const outside = t.testdir();
  const mounted = join(outside, mountPath);
  mkdirSync(mounted, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(mounted, name), text, { mode: 0o644 });
  const { path } = emulator(image.architecture);
  if (path !== undefined) {
    copyFileSync(path, join(mounted, basename(path)));
    chmodSync(join(mounted, basename(path)), 0o755);
  }
  const ofImage = (args: readonly string[]): Output => {
    const { program, args: words } = command(image, mounted, args);
    return run(program, words);
  };

  await t.test('--version', async (t) => {
    const { code, out, err } = ofImage(['--version']);
    t.equal(err, '');
    t.equal(code, 0);
    t.equal(out, `archwright ${version} (${commit})\n`);
    t.equal(image.labels['org.opencontainers.image.revision'], commit);
  });
  await t.test('the output is the same as from the source', async (t) => {
    for (const args of cases)
      t.strictSame(ofImage(args), run(process.execPath, [entry, ...args], outside), args.join(' '));
  });
  await t.test('the program has a read-only file system and is not root', async (t) => {
    const script = "require('fs').writeFileSync(process.argv[1], '')";
    for (const [file, code] of [
      ['/tmp/x', 'EROFS'],
      ['/opt/archwright/x', 'EROFS'],
      [`/${mountPath}/x`, 'EACCES'],
    ] as const) {
      const [node = ''] = image.entrypoint;
      const { program, args } = command({ ...image, entrypoint: [node, '-e', script] }, mounted, [file]);
      like(t, run(program, args), { code: 1, err: new RegExp(code) }, file);
    }
  });
  await t.test('a webhook places a pod by image facts from agent and registry', (t) =>
    chain(t, image, mounted),
  );
}

interface Output {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(program: string, args: readonly string[], cwd = '/'): Output {
  const env = { PATH: process.env['PATH'] ?? '' };
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: timeoutMs,
    env,
    cwd,
  });
  return { code: status, out: timeless(stdout), err: timeless(stderr) };
}

function timeless(text: string): string {
  return text.replaceAll(/"(time|confirmedAt)": ?"[^"]*"/g, '"$1":""');
}
