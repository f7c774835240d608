/** `helm template … | archwright check -` by both versions of Helm, with the whole chart enabled. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { image, multiArch } from '../../support/registry/content.ts';
import { startTestRegistry } from '../../support/registry/server.ts';
import { helms } from '../programs/helm.ts';
import { render } from './helm.ts';
import { objectsOf } from './rendered.ts';
import { everything } from './value-sets.ts';

interface Results {
  readonly results: readonly { readonly line: number; readonly image: string; readonly verdict: string }[];
}

async function check(input: string, cache: string) {
  const args = ['cmd/archwright.ts', 'check', '--require', 'arm64', '--output', 'json', '-'];
  // Without this user's registry logins.
  const env = { PATH: process.env['PATH'] ?? '', HOME: cache, XDG_CACHE_HOME: cache };
  const child = spawn(process.execPath, args, { env });
  child.stdin.end(input);
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ]);
  return { code, out, err };
}

for (const helm of helms) {
  t.test(`${helm} renders a chart that passes the checks`, async (t) => {
    const server = await startTestRegistry();
    t.teardown(() => server.close());
    const name = `${server.host}/archwright:v1`;
    const values = { ...everything, image: { registry: server.host, repository: 'archwright', tag: 'v1' } };
    const rendered = render(helm, values);
    const lines = rendered.split('\n');
    const written = lines.flatMap((line, index) => (line.trim() === `image: ${name}` ? [index + 1] : []));
    t.ok(written.length > 3, `${written.length} containers`);
    t.ok(objectsOf(rendered).length > written.length);

    for (const [content, verdict, expected] of [
      [multiArch(['linux/amd64', 'linux/arm64']), 'ok', 0],
      [image('linux/amd64'), 'missing', 1],
    ] as const) {
      server.push('archwright', 'v1', content);
      server.clearRequests();
      const { code, out, err } = await check(rendered, t.testdir({}));
      t.strictSame([code, err], [expected, ''], verdict);
      const { results } = JSON.parse(out) as Results;
      t.strictSame(
        results.map(({ line }) => line).sort((a, b) => a - b),
        written,
        'each image is reported with its line',
      );
      t.strictSame(new Set(results.map(({ verdict: found }) => found)), new Set([verdict]));
      const manifests = server.requests.filter(({ path }) => path.endsWith('/manifests/v1'));
      t.equal(manifests.length, 1, 'the image is looked up once');
    }
  });
}
