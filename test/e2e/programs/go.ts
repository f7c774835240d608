/** Builds Go programs in a wrapper module that gets their module from the Go module proxy; no clone. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { cache, onPath, refuseInBox, say } from './cache.ts';

export interface GoModule {
  readonly path: string;
  readonly version: string;
  readonly ldflags?: string;
  /** Build tags. */
  readonly tags?: string;
  /**
   * Module that sets the versions of dependencies. Programs that share them share the Go build cache, which
   * halves the time of the second one. Not for programs under test.
   */
  readonly dependenciesOf?: Pick<GoModule, 'path' | 'version'>;
}

/** A few minutes on two idle cores, much longer on busy ones; modules may have to be downloaded first. */
const timeoutMs = 40 * 60_000;
const maxOutputBytes = 16 * 1024 * 1024;

/**
 * Builds programs of one module in one call: both cores stay busy while one of them is linked.
 * @param programs package → file of the program, which appears only when it is complete
 */
export function buildPackages(module: GoModule, programs: Readonly<Record<string, string>>): void {
  const names = Object.keys(programs);
  withWrapper(module, Object.values(programs), {}, (wrapper) => {
    goBuild(wrapper, module, ['-o', `${join(wrapper, 'bin')}/`, ...names]);
    for (const [name, path] of Object.entries(programs))
      renameSync(join(wrapper, 'bin', basename(name.replace(/\/v\d+$/, ''))), path);
  });
}

/** @returns the path of a program in the cache, built if necessary */
export function built(name: string, module: GoModule, package_: string): string {
  const path = join(cache, `${name}-${module.version}`);
  if (!existsSync(path)) buildPackages(module, { [package_]: path });
  return path;
}

/** The same for a program of our own from the packages of a module. @param main its `main.go`; comments do not change it */
export function builtSource(name: string, module: GoModule, main: URL): string {
  const source = readFileSync(main, 'utf8');
  const code = source.replaceAll(/^\s*\/\/.*$/gm, '');
  const digest = createHash('sha256').update(code).digest('hex').slice(0, 8);
  const output = join(cache, `${name}-${module.version}-${digest}`);
  if (existsSync(output)) return output;
  withWrapper(module, [output], { 'main.go': source }, (wrapper) => {
    goBuild(wrapper, module, ['-o', join(wrapper, 'program'), '.']);
    renameSync(join(wrapper, 'program'), output);
  });
  return output;
}

interface Downloaded {
  readonly Dir: string;
  readonly GoMod: string;
}

export function downloadModule(
  { path, version }: Pick<GoModule, 'path' | 'version'>,
  cwd: string,
): Downloaded {
  requireGo(path);
  return JSON.parse(go(['mod', 'download', '-json', `${path}@${version}`], cwd)) as Downloaded;
}

function requireGo(path: string): void {
  refuseInBox(`a program of ${path}`);
  if (onPath('go') === undefined)
    throw new Error(`${path} is needed: install go, or set KUBE_BIN_DIR to a folder with the programs`);
}

function withWrapper(
  module: GoModule,
  outputs: readonly string[],
  files: Readonly<Record<string, string>>,
  build: (wrapper: string) => void,
): void {
  requireGo(module.path);
  say(`building ${outputs.map((path) => basename(path)).join(', ')} from ${module.path}@${module.version}`);
  const wrapper = join(dirname(outputs[0] ?? ''), `wrapper-${process.pid}`);
  if (existsSync(wrapper)) rmSync(wrapper, { recursive: true });
  mkdirSync(join(wrapper, 'bin'), { recursive: true });
  writeFileSync(join(wrapper, 'go.mod'), wrapperModule(module, wrapper));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(wrapper, name), text);
  build(wrapper);
  rmSync(wrapper, { recursive: true });
}

function wrapperModule(module: GoModule, cwd: string): string {
  const text = readFileSync(downloadModule(module, cwd).GoMod, 'utf8');
  const replaced = new Map(stagingOf(text, module.version));
  if (module.dependenciesOf !== undefined) {
    const { GoMod } = downloadModule(module.dependenciesOf, cwd);
    const shared = readFileSync(GoMod, 'utf8');
    for (const [, path = '', version = ''] of shared.matchAll(/^\s*(?:require )?(\S+\.\S+) (v\S+)/gm))
      if (path !== module.path && !path.startsWith('//')) replaced.set(path, version);
    for (const [path, version] of stagingOf(shared, module.dependenciesOf.version))
      replaced.set(path, version);
  }
  return [
    'module wrapper',
    /^go .*$/m.exec(text)?.[0] ?? 'go 1.26',
    `require ${module.path} ${module.version}`,
    ...[...replaced].map(([path, version]) => `replace ${path} => ${path} ${version}`),
    '',
  ].join('\n');
}

/** Kubernetes replaces its staging modules by folders, which are not in the module that the proxy serves. */
function stagingOf(goMod: string, version: string): readonly (readonly [path: string, version: string])[] {
  const staged = goMod.matchAll(/^\s*(?:replace )?(k8s\.io\/\S+) => \.\/staging\//gm);
  return [...staged].map(([, path = '']) => [path, version.replace(/^v1/, 'v0')] as const);
}

/**
 * Without -trimpath: with it, a package built in two wrappers that replace its version is built twice. Without debug
 * information the compiler takes a tenth less CPU time (net/http and go/types: 18.8 s for 21.1 s).
 */
function goBuild(wrapper: string, { ldflags = '', tags = '' }: GoModule, args: readonly string[]): void {
  const flags = ['-tags', tags, '-gcflags', 'all=-dwarf=false', '-ldflags', `-s -w ${ldflags}`];
  go(['build', ...flags, ...args], wrapper);
}

function go(args: readonly string[], cwd: string): string {
  return execFileSync('go', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: timeoutMs,
    maxBuffer: maxOutputBytes,
    // With GOGC=400 the compiler takes a quarter less CPU time (k8s.io/api/core/v1: 9.6 s for 12.8 s).
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=mod', GOGC: '400' },
  });
}
