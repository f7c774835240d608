import t from 'tap';
import {
  only,
  onlyStrict,
  selectFromIndex,
  windowsVersionMatches,
  type PlatformMatcher,
  acceptedPlatforms,
} from '../../src/nodes/platform-match.ts';
import { formatFullPlatform, parsePlatform } from '../../scripts/vectors/upstream/platform-specifier.ts';
import { formatPlatform } from '../../src/names/platform.ts';

const parse = (text: string) =>
  text
    .split(' ')
    .filter(Boolean)
    .map((one) => parsePlatform(one));

t.test('compatible platforms of a CPU, best first', async (t) => {
  const cases: [node: string, accepted: string][] = [
    ['linux/amd64', 'linux/amd64 linux/386'],
    ['linux/amd64/v1', 'linux/amd64 linux/386'],
    ['linux/amd64/v3', 'linux/amd64/v3 linux/amd64/v2 linux/amd64/v1 linux/386'],
    ['linux/amd64/odd', 'linux/amd64/odd linux/386'],
    ['linux/386', 'linux/386'],
    ['linux/arm', 'linux/arm/v7 linux/arm/v6 linux/arm/v5'],
    ['linux/arm/v6', 'linux/arm/v6 linux/arm/v5'],
    ['linux/arm/v5', 'linux/arm/v5'],
    ['linux/arm/v4', 'linux/arm/v4'],
    ['linux/arm64', 'linux/arm64/v8 linux/arm/v8 linux/arm/v7 linux/arm/v6 linux/arm/v5'],
    [
      'linux/arm64/v8.2',
      'linux/arm64/v8.2 linux/arm64/v8.1 linux/arm64/v8 linux/arm/v8 linux/arm/v7 linux/arm/v6 linux/arm/v5',
    ],
    [
      'linux/arm64/v9.1',
      'linux/arm64/v9.1 linux/arm64/v9 linux/arm64/v8.6 linux/arm64/v8.5 linux/arm64/v8.4 linux/arm64/v8.3 linux/arm64/v8.2 linux/arm64/v8.1 linux/arm64/v8 linux/arm/v8 linux/arm/v7 linux/arm/v6 linux/arm/v5',
    ],
    ['linux/arm64/v10', 'linux/arm64/v10'],
    ['linux/riscv64', 'linux/riscv64'],
  ];
  for (const [node, accepted] of cases) {
    t.equal(acceptedPlatforms(parsePlatform(node)).map(formatPlatform).join(' '), accepted, node);
  }
  t.equal(
    formatPlatform(acceptedPlatforms(parsePlatform('linux/arm64/v9.7'))[8] ?? parsePlatform('linux')),
    'linux/arm64/v8.9',
  );
});

t.test('platforms match as in containerd', async (t) => {
  const cases: [name: string, matcher: PlatformMatcher, yes: string, no: string][] = [
    [
      'only',
      only(parsePlatform('linux/amd64')),
      'linux/x86_64 linux/386',
      'linux/amd64/v2 linux/arm64 windows/amd64',
    ],
    [
      'strict',
      onlyStrict(parsePlatform('linux/arm64')),
      'linux/arm64/v8 linux/aarch64',
      'linux/arm64/v9 linux/arm/v7',
    ],
    [
      'Windows 2022',
      only(parsePlatform('windows(10.0.20348)/amd64')),
      'windows/amd64 windows(10.0.20348.1)/amd64',
      'windows(10.0.17763)/amd64 windows(10.0.26100)/amd64 windows(odd)/amd64',
    ],
    ['versions of others', onlyStrict(parsePlatform('linux(1)/amd64')), 'linux(2)/amd64', ''],
  ];
  for (const [name, matcher, yes, no] of cases) {
    for (const one of parse(yes)) t.ok(matcher.matches(one), `${name}: ${formatFullPlatform(one)}`);
    for (const one of parse(no)) t.notOk(matcher.matches(one), `${name}: ${formatFullPlatform(one)}`);
  }
});

t.test('the best entry of an index is chosen', async (t) => {
  const [amd64, arm64, arm7, x386] = parse('linux/amd64 linux/arm64 linux/arm/v7 linux/386');
  t.strictSame(
    selectFromIndex([undefined, x386, arm64, amd64, undefined, amd64], only(parsePlatform('amd64'))),
    [3, 5, 1, 0, 4],
  );
  t.strictSame(selectFromIndex([arm7], only(parsePlatform('arm64'))), [0]);
  t.strictSame(selectFromIndex([arm7], onlyStrict(parsePlatform('arm64'))), []);
  t.strictSame(selectFromIndex([], only(parsePlatform('arm64'))), []);
});

t.test('a Windows host runs containers of compatible versions', async (t) => {
  /** By host: containers that run, and containers that do not. */
  const cases: Readonly<Record<string, readonly [runs: string, others?: string]>> = {
    '10.0.17763': ['10.0.17763.5329', '10.0.20348.1 11.0.17763 10.1.17763'],
    '10.0.20348': [' 10.0.20348.1', '10.0.25398.1 10.0.20347 odd'],
    '10.0.22621': ['10.0.20348', '10.0.22622'],
    '10.0.26100': ['10.0.20348'],
    '10.0.26200': ['10.0.26100', '10.0.17763.1'],
    '10.0.65535': ['10.0.26100', '10.1.1'],
    '10.1.20348': ['10.1.20348', '10.0.20348'],
    '255.255.17763': ['255.255.17763', '255.255.17764'],
  };
  for (const [host, lists] of Object.entries(cases))
    for (const [index, list] of lists.entries())
      for (const container of list?.split(' ') ?? [])
        t.equal(windowsVersionMatches(host, container), index === 0, `${container} on ${host}`);
  for (const host of ['', 'odd', '0.0.0', '10.0.70000', '300.0.1'])
    t.ok(windowsVersionMatches(host, '10.0.17763'), `${host}: not a version`);
});
