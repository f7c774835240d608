import t from 'tap';
import * as fc from 'fast-check';
import {
  InvalidPlatform,
  formatFullPlatform,
  parsePlatform,
} from '../../../scripts/vectors/upstream/platform-specifier.ts';

t.test('specifiers are parsed as in containerd', async (t) => {
  const cases: [text: string, platform: object, formatted: string][] = [
    ['linux', { os: 'linux', architecture: 'amd64' }, 'linux/amd64'],
    ['macOS', { os: 'darwin', architecture: 'amd64' }, 'darwin/amd64'],
    ['aarch64', { os: 'linux', architecture: 'arm64' }, 'linux/arm64'],
    ['armhf', { os: 'linux', architecture: 'arm' }, 'linux/arm'],
    ['armel', { os: 'linux', architecture: 'arm', variant: 'v6' }, 'linux/arm/v6'],
    ['riscv64', { os: 'linux', architecture: 'riscv64' }, 'linux/riscv64'],
    ['Linux/x86_64', { os: 'linux', architecture: 'amd64' }, 'linux/amd64'],
    ['linux/arm', { os: 'linux', architecture: 'arm' }, 'linux/arm'],
    ['linux/arm/7', { os: 'linux', architecture: 'arm', variant: 'v7' }, 'linux/arm/v7'],
    ['linux/arm64/v8', { os: 'linux', architecture: 'arm64', variant: 'v8' }, 'linux/arm64/v8'],
    ['linux/arm64/v9.0', { os: 'linux', architecture: 'arm64', variant: 'v9' }, 'linux/arm64/v9'],
    ['linux/amd64/v1', { os: 'linux', architecture: 'amd64' }, 'linux/amd64'],
    ['mine/own', { os: 'mine', architecture: 'own' }, 'mine/own'],
    ['windows()', { os: 'windows', architecture: 'amd64' }, 'windows/amd64'],
    [
      'windows(10.0.17763%2B1+b+a)/arm64',
      { os: 'windows', architecture: 'arm64', osVersion: '10.0.17763+1', osFeatures: ['b', 'a'] },
      'windows(10.0.17763%2B1+a+b)/arm64',
    ],
    ['linux(+a%2Fb)', { os: 'linux', architecture: 'amd64', osFeatures: ['a/b'] }, 'linux(+a%2Fb)/amd64'],
    ['linux(%25%28%29)', { os: 'linux', architecture: 'amd64', osVersion: '%()' }, 'linux(%25%28%29)/amd64'],
  ];
  for (const [text, platform, formatted] of cases) {
    t.strictSame(parsePlatform(text), platform, text);
    t.equal(formatFullPlatform(parsePlatform(text)), formatted, text);
  }
  t.strictSame(parsePlatform('s390x', { os: 'windows', architecture: 'arm64' }), {
    os: 'windows',
    architecture: 's390x',
  });
  t.strictSame(parsePlatform('linux', { os: 'windows', architecture: 'arm64' }), {
    os: 'linux',
    architecture: 'arm64',
  });
  t.equal(formatFullPlatform({ os: '', architecture: 'amd64', osVersion: '1' }), 'unknown');
});

t.test('malformed specifiers are refused', async (t) => {
  const os = String.raw`OSAndVersion specifier component must match "^([A-Za-z0-9_-]+)(?:\\(([A-Za-z0-9_.%-]*)((?:\\+[A-Za-z0-9_.%-]+)*)\\))?$"`;
  const component = 'platform specifier component must match "^[A-Za-z0-9_.-]+$"';
  const cases: [text: string, message: string][] = [
    ['', `"" is an invalid OS component of "": ${os}: invalid argument`],
    ['lin ux/arm', `"lin ux" is an invalid OS component of "lin ux/arm": ${os}: invalid argument`],
    ['linux(/arm', `"linux(" is an invalid OS component of "linux(/arm": ${os}: invalid argument`],
    ['linux/', `"" is an invalid component of "linux/": ${component}: invalid argument`],
    ['linux/a/b/c', '"linux/a/b/c": cannot parse platform specifier: invalid argument'],
    ['linux/a/b/c/d', `"c/d" is an invalid component of "linux/a/b/c/d": ${component}: invalid argument`],
    ['linux/*', '"linux/*": wildcards not yet supported: invalid argument'],
    ['mine', '"mine": unknown operating system or architecture: invalid argument'],
    ['amd64(1)', '"amd64(1)": unknown operating system or architecture: invalid argument'],
    ['windows(5%)', '"windows(5%)" has an invalid OS version "5%": invalid URL escape "%"'],
    ['windows(5%zz1)', '"windows(5%zz1)" has an invalid OS version "5%zz1": invalid URL escape "%zz"'],
    ['linux(+a%2)', '"linux(+a%2)" has an invalid OS feature "a%2": invalid URL escape "%2"'],
    ['linux(%ff)', '"linux(%ff)" has an invalid OS version "%ff": its escapes are not UTF-8'],
  ];
  for (const [text, message] of cases) {
    t.throws(() => parsePlatform(text), { name: 'InvalidPlatform', code: 'invalid-platform', message }, text);
  }
});

t.test('property: a formatted specifier parses to itself', async (t) => {
  const word = fc.stringMatching(/^[a-z0-9]{1,8}$/);
  const option = fc.string({
    minLength: 1,
    maxLength: 8,
    unit: fc.constantFrom('a', '1', '.', '-', '%', '+', '(', ')', '/'),
  });
  const platform = fc.record({
    os: word,
    architecture: word,
    osVersion: option,
    osFeatures: fc.uniqueArray(option, { minLength: 1, maxLength: 3 }).map((list) => list.sort()),
  });
  fc.assert(
    fc.property(platform, (one) => {
      const parsed = parsePlatform(formatFullPlatform(one));
      t.matchOnly(parsePlatform(formatFullPlatform(parsed)), parsed);
      t.equal(parsed.osVersion, one.osVersion);
      t.strictSame(parsed.osFeatures, one.osFeatures);
    }),
    { numRuns: 200 },
  );
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (text) => {
      try {
        return parsePlatform(text).architecture !== '';
      } catch (error) {
        return error instanceof InvalidPlatform;
      }
    }),
    { numRuns: 1000 },
  );
});
