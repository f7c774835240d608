import t from 'tap';
import { parseVersion, programsFor, rulesFor } from '../../../../daemon/containerd/config/rules.ts';

t.test('versions are parsed', async (t) => {
  t.strictSame(parseVersion('v2.1.4'), [2, 1, 4]);
  t.strictSame(parseVersion('1.6.20~ds1'), [1, 6, 20]);
  t.strictSame(parseVersion('2.1.5-k3s1'), [2, 1, 5]);
  t.strictSame(parseVersion('2.3'), [2, 3, 0]);
  for (const none of ['', 'latest', '2', 'a2.1', '99999.1']) t.equal(parseVersion(none), undefined, none);
});

t.test('each rule has its first and last version', async (t) => {
  const begins: [keyof ReturnType<typeof rulesFor>, before: string, from: string][] = [
    ['refusesNewerFiles', '1.6.38', '1.7.0'],
    ['relativeGlobs', '1.6.38', '1.7.0'],
    ['httpFallback', '1.6.38', '1.7.0'],
    ['hostsOptional', '1.7.31', '1.7.32'],
    ['migrates', '1.7.32', '2.0.0'],
    ['migratesEachFile', '2.2.9', '2.3.0'],
    ['mergesPlugins', '1.7.32', '2.0.0'],
    ['hostsByHeader', '1.7.32', '2.0.0'],
    ['transferService', '2.0.9', '2.1.0'],
    ['tokenHeaders', '2.0.9', '2.1.0'],
    ['dialTimeout', '2.0.9', '2.1.0'],
    ['defaultConfigPath', '2.1.9', '2.2.0'],
    ['referrers', '2.1.9', '2.2.0'],
  ];
  for (const [rule, before, from] of begins) {
    t.equal(rulesFor(before)[rule], false, `${rule} before ${from}`);
    t.equal(rulesFor(from)[rule], true, `${rule} from ${from}`);
    t.equal(rulesFor()[rule], true, `${rule} in the newest`);
  }
  t.equal(rulesFor('1.7.32').tlsTables, true);
  t.equal(rulesFor('2.0.0').tlsTables, false);
  t.strictSame(
    ['1.6.0', '2.0.0', '2.2.9', '2.3.0', undefined].map((version) => rulesFor(version).configVersion),
    [2, 3, 3, 4, 4],
  );
});

t.test('the program is chosen by the configuration', async (t) => {
  t.match(programsFor('/var/lib/rancher/k3s/agent/etc/containerd/config.toml')[0], /k3s/);
  t.strictSame(programsFor('/else/config.toml'), programsFor('/etc/containerd/config.toml'));
});
