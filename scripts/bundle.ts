/**
 * Makes the file that the image ships: `dist/archwright.mjs`, with everything but Node's own modules. The
 * Kubernetes library is a separate file, because only programs with a kubeconfig load it.
 *
 *   node scripts/bundle.ts [DIRECTORY]       Default: `dist`. The directory is emptied before.
 *   node scripts/bundle.ts --root DIRECTORY  the program's part of the image's root file system
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

function commit(): string {
  const given = process.env['ARCHWRIGHT_COMMIT'];
  if (given !== undefined && given !== '') return given;
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown';
  }
}

const [first = 'dist', root] = process.argv.slice(2);
const isRoot = first === '--root' && root !== undefined;
const outdir = isRoot ? join(root, 'opt/archwright') : first;
// The names of its parts change with their content.
rmSync(outdir, { recursive: true, force: true });
/**
 * Koa's table of media types, in three copies: 137 KB each, 4 MiB of memory in every process.
 * Archwright names its types itself and needs only their character sets.
 */
const mediaTypes: Plugin = {
  name: 'media types',
  setup: (bundling) =>
    bundling.onLoad({ filter: /[/\\]mime-db[/\\]db\.json$/ }, ({ path }) => {
      const all = Object.entries(JSON.parse(readFileSync(path, 'utf8')) as Readonly<Record<string, object>>);
      const kept = all.filter(([name]) => /^(?:text\/.*|application\/(?:json|octet-stream))$/.test(name));
      return { loader: 'json', contents: JSON.stringify(Object.fromEntries(kept)) };
    }),
};

/**
 * An `import` reads every export of a module. `WebSocket` of `node:http` loads Node's copy of undici, and
 * `rootCertificates` of `node:tls` copies 140 certificates: 10 MiB and 100 ms in every process, which may never
 * use them. `require` reads only what is used.
 */
const onDemand: Plugin = {
  name: 'on demand',
  setup: (bundling) => {
    const namespace = 'on demand';
    bundling.onResolve({ filter: /^(?:node:)?(?:http|tls)$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace } : { path, external: true },
    );
    bundling.onLoad({ filter: /./, namespace }, ({ path }) => ({
      contents: `module.exports = require('${path}');`,
      resolveDir: '.',
    }));
  },
};

await build({
  plugins: [mediaTypes, onDemand],
  entryPoints: { archwright: 'cmd/archwright.ts' },
  outdir,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  minifySyntax: true,
  // Each process holds its source text in memory: without this, 1.6 MiB more. Names stay, for stack traces.
  minifyWhitespace: true,
  legalComments: 'linked',
  define: {
    'process.env.ARCHWRIGHT_BUILT_VERSION': JSON.stringify(version),
    'process.env.ARCHWRIGHT_BUILT_COMMIT': JSON.stringify(commit()),
  },
  // CommonJS packages inside need `require` and `__dirname`, which modules do not have.
  banner: {
    js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url); const __filename = import.meta.filename; const __dirname = import.meta.dirname;",
  },
  logLevel: 'warning',
});
if (isRoot) {
  copyFileSync('LICENSE', join(outdir, 'LICENSE'));
  const bin = join(root, 'usr/local/bin');
  mkdirSync(bin, { recursive: true });
  // A base may have no shell, and a file without an extension is CommonJS.
  writeFileSync(
    join(bin, 'archwright'),
    "#!/usr/local/bin/node\nimport('/opt/archwright/archwright.mjs');\n",
  );
  chmodSync(join(bin, 'archwright'), 0o755);
}
process.stdout.write(`${outdir}/archwright.mjs\n`);
