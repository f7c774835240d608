/**
 * Runs the steps of the pipelines in `examples/ci`, with the real program, and scripts for `helm` and
 * `docker`.
 */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parseDocument } from 'yaml';
import { childEnv, directory, dockerConfig, program, registry, write } from '../cmd/world.ts';
import { image, multiArch } from '../support/registry/content.ts';

type Texts = Readonly<Record<string, string>>;

interface GitHubStep {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Texts;
}

interface GitHubWorkflow {
  readonly env: Texts;
  readonly permissions: Texts;
  readonly jobs: Readonly<Record<string, { readonly steps: readonly GitHubStep[] }>>;
}

interface GitLabJob {
  readonly needs?: readonly string[];
  readonly variables?: Texts;
  readonly before_script?: readonly string[];
  readonly script: readonly string[];
  readonly artifacts: { readonly paths?: readonly string[]; readonly reports?: { readonly junit?: string } };
  readonly allow_failure?: { readonly exit_codes: number };
}

function read(name: string): unknown {
  const document = parseDocument(readFileSync(`examples/ci/${name}`, 'utf8'), { strict: true });
  t.strictSame([...document.errors, ...document.warnings], [], name);
  return document.toJS();
}

/** A checkout, and the programs of the runner. */
async function workspace(t: Test, tag: string) {
  const server = await registry(t, { auth: { kind: 'basic', users: { ann: 'pass-of-ann' } } });
  server.push('shop/web', 'both', multiArch(['linux/amd64', 'linux/arm64']));
  server.push('shop/web', 'old', image('linux/amd64'));
  const root = directory(t);
  const rendered = `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: web\n    image: ${server.host}/shop/web:${tag}\n`;
  const archwright = `exec "${process.execPath}" "${program}" "$@"`;
  write(root, {
    'rendered.txt': rendered,
    'work/charts/shop/Chart.yaml': 'name: shop\n',
    'bin/helm': `#!/bin/sh\n[ "$*" = "template shop charts/shop" ] && [ -d charts/shop ] && cat "${root}/rendered.txt"\n`,
    'bin/archwright': `#!/bin/sh\n${archwright}\n`,
    // Runs the arguments after the image, with the variables of --env, and the mount for /src.
    'bin/docker': `#!/bin/bash
[ "$1" = run ] || exit 125; shift
while [[ "$1" == --* ]]; do
  case $1 in
    --rm) shift ;;
    --env) export "\${2//\\/src/$PWD}"; shift 2 ;;
    --volume) [ "$2" = "$PWD:/src" ] || exit 125; shift 2 ;;
    --workdir) [ "$2" = /src ] || exit 125; shift 2 ;;
    --user) shift 2 ;;
    *) exit 125 ;;
  esac
done
[ "$1" = registry.example.com/archwright:0.1.0 ] || exit 125; shift
${archwright}
`,
  });
  for (const name of ['helm', 'archwright', 'docker']) chmodSync(`${root}/bin/${name}`, 0o755);
  const work = join(root, 'work');
  const login = dockerConfig(server.host, 'ann', 'pass-of-ann');
  const shell = async (script: string, env: Texts): Promise<number | null> => {
    // With the shell options of both services.
    const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', script], {
      cwd: work,
      env: { ...childEnv, ...env, PATH: `${root}/bin:${childEnv.PATH}` },
      stdio: 'inherit',
    });
    return await new Promise((resolve) => child.on('close', resolve));
  };
  return { work, login, shell };
}

for (const [tag, expected] of [
  ['both', 0],
  ['old', 1],
] as const) {
  t.test(`the GitHub workflow with an image ${tag}`, async (t) => {
    const { env, jobs, permissions } = read('github-check.yaml') as GitHubWorkflow;
    const steps = Object.values(jobs).flatMap((job) => job.steps);
    for (const { uses, run } of steps) t.ok((uses === undefined) !== (run === undefined));
    for (const { uses } of steps) if (uses) t.match(uses, /^[\w-]+\/[\w/-]+@v\d+$/);
    t.equal(permissions['security-events'], 'write');
    const { work, login, shell } = await workspace(t, tag);
    const variables = Object.fromEntries(
      Object.entries(env).map(([key, value]) => [key, value.replace('${{ github.workspace }}', work)]),
    );
    write(variables['DOCKER_CONFIG'] ?? '', { 'config.json': login });
    const codes: (number | null)[] = [];
    for (const { run = '' } of steps.filter((step) => step.run)) codes.push(await shell(run, variables));
    t.strictSame(codes, [0, expected]);
    const uploaded = steps.find(({ uses }) => uses?.includes('upload-sarif'))?.with?.['sarif_file'] ?? '';
    const { runs } = JSON.parse(readFileSync(join(work, uploaded), 'utf8')) as {
      runs: { results: object[] }[];
    };
    t.equal(runs[0]?.results.length, expected);
    const cached = steps.find(({ uses }) => uses?.includes('cache'))?.with?.['path'] ?? '';
    t.equal(existsSync(join(work, cached, 'archwright')), true, 'the cache is in the saved path');
  });

  t.test(`the GitLab job with an image ${tag}`, async (t) => {
    const { render, arm64 } = read('gitlab-check.yaml') as { render: GitLabJob; arm64: GitLabJob };
    t.strictSame(arm64.needs, ['render']);
    t.strictSame(arm64.allow_failure, { exit_codes: 3 });
    const { work, login, shell } = await workspace(t, tag);
    mkdirSync(join(work, '.cache'));
    const variables = Object.fromEntries(
      Object.entries(arm64.variables ?? {}).map(([key, value]) => [
        key,
        value.replace('$CI_PROJECT_DIR', work),
      ]),
    );
    t.equal(await shell(render.script.join('\n'), {}), 0);
    t.ok(render.artifacts.paths?.every((path) => existsSync(join(work, path))));
    const lines = [...(arm64.before_script ?? []), ...arm64.script].join('\n');
    t.equal(await shell(lines, { ...variables, DOCKER_AUTH_CONFIG: login }), expected);
    const report = readFileSync(join(work, arm64.artifacts.reports?.junit ?? ''), 'utf8');
    t.match(report, `tests="1" failures="${expected}" errors="0"`);
    if (tag !== 'both') return;
    const other = { ...variables, XDG_CACHE_HOME: join(work, 'other') };
    t.equal(await shell(lines, other), 3, 'without the login, the registry refuses');
  });
}
