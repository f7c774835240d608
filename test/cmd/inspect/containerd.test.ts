/** `inspect` on a machine with containerd mirrors. */
import t from 'tap';
import { image } from '../../support/registry/content.ts';
import { run } from '../run.ts';
import { files, registry, resultsIn } from '../world.ts';
import { like } from '../../support/like.ts';

const config = `version = 3
[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/certs.d"
`;

t.test('the mirror of hosts.toml is used, and its files are shown', async (t) => {
  const mirror = await registry(t, { tls: false });
  mirror.push('team/app', 'v1', image('linux/s390x'), 'upstream.invalid');
  const { directory } = files(t, {
    'etc/containerd/config.toml': config,
    'etc/certs.d/upstream.invalid/hosts.toml': `[host."${mirror.url}"]\n`,
    'etc/certs.d/broken.example/hosts.toml': 'server = 1',
  });
  const flags = ['--host-root', directory, '--containerd-version', '2.4.2', '--output', 'json'];
  const found = await run(['inspect', ...flags, '--verbose', 'upstream.invalid/team/app:v1']);
  like(t, resultsIn(found.out), [
    { platforms: [{ architecture: 's390x' }], endpoint: mirror.host, credentialSource: 'anonymous' },
  ]);
  t.match(
    found.err,
    /containerd.*\/etc\/containerd\/config\.toml of containerd 2\.4\.2, hosts in \/etc\/certs\.d/,
  );
  t.match(found.err, /broken\.example\/hosts\.toml.*server must be a string/);
  const left = await run([
    'inspect',
    ...flags,
    '--containerd-config-path-candidates',
    '',
    'upstream.invalid/team/app:v1',
  ]);
  t.equal(left.code, 3, 'an empty list disables containerd');
});

t.test("`proxies` take precedence over containerd's mirrors", async (t) => {
  const [proxy, mirror] = [await registry(t, { tls: false }), await registry(t, { tls: false })];
  proxy.push('team/app', 'v1', image('linux/arm64'), 'upstream.invalid');
  mirror.push('team/app', 'v1', image('linux/s390x'), 'upstream.invalid');
  const { directory } = files(t, {
    'etc/containerd/config.toml': config,
    'etc/certs.d/upstream.invalid/hosts.toml': `[host."${mirror.url}"]\n`,
  });
  const { out } = await run([
    'inspect',
    `--host-root=${directory}`,
    '--containerd-version=2.4.2',
    `--proxies=upstream.invalid=${proxy.url}`,
    '-o',
    'json',
    'upstream.invalid/team/app:v1',
  ]);
  like(t, resultsIn(out), [{ endpoint: proxy.host }]);
});
