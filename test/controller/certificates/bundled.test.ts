/** What the image ships is bundled, where packages of CommonJS are not what they are when Node loads them. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import t from 'tap';
import type * as Issue from '../../../src/controller/certificates/issue.ts';

t.test('certificates are issued by the bundle as by the source', async (t) => {
  const outdir = t.testdir();
  await build({
    entryPoints: ['src/controller/certificates/issue.ts'],
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
  const bundled = (await import(pathToFileURL(join(outdir, 'issue.mjs')).href)) as typeof Issue;
  const { certificate } = await bundled.issueAuthority({ from: Date.now(), to: Date.now() + 60_000 });
  t.match(certificate, { pem: /^-----BEGIN CERTIFICATE-----/ });
});
