import t from 'tap';
import * as fc from 'fast-check';
import {
  formatPlatform,
  isSpelling,
  normalizeArchitecture,
  normalizeOs,
  normalizePlatform,
  platformsOf,
} from '../../src/names/platform.ts';
import { isArchitecture } from '../../src/names/architecture.ts';

t.test('architectures are normalized as containerd does', async (t) => {
  const cases: Readonly<Record<string, string>> = {
    'amd64/': 'AMD64/ x86_64/v1',
    'amd64/v2': 'x86-64/V2',
    'amd64/v3': 'amd64/v3',
    '386/': 'i386/v1',
    '386/v1': '386/v1',
    'arm64/': 'aarch64/8 arm64/V8 arm64/v8.0',
    'arm64/v8.1': 'arm64/v8.1',
    'arm64/v9': 'arm64/9 arm64/9.0 arm64/v9.0',
    'arm/v5': 'arm/5',
    'arm/v6': 'armel/v7 arm/6 arm/v6',
    'arm/v7': 'armhf/v5 arm/ arm/7',
    'arm/v8': 'arm/8',
    'arm/9': 'arm/9',
    'i686/': 'i686/',
    'armv7l/': 'armv7l/',
    's390x/': 's390x/',
  };
  for (const [expected, spellings] of Object.entries(cases))
    for (const written of spellings.split(' ')) {
      const [architecture = '', variant] = written.split('/');
      const normalized = normalizeArchitecture(architecture, variant);
      t.equal(`${normalized.architecture}/${normalized.variant}`, expected, written);
    }
  t.strictSame(normalizeArchitecture('arm'), { architecture: 'arm', variant: 'v7' });
});

t.test('operating systems are normalized', async (t) => {
  t.equal(normalizeOs('Linux'), 'linux');
  t.equal(normalizeOs('macOS'), 'darwin');
  t.equal(normalizeOs(''), 'linux');
  t.equal(normalizeOs('', 'windows'), 'windows');
  t.strictSame(normalizePlatform({ os: 'Windows', architecture: 'x86_64', osVersion: '10' }), {
    os: 'windows',
    architecture: 'amd64',
    osVersion: '10',
  });
});

t.test('platforms are formatted', async (t) => {
  t.equal(formatPlatform({ os: 'linux', architecture: 'arm', variant: 'v7' }), 'linux/arm/v7');
  t.equal(formatPlatform({ os: 'linux', architecture: 'amd64' }), 'linux/amd64');
  t.equal(formatPlatform({ os: 'linux', architecture: '' }), 'linux');
  t.equal(formatPlatform({ os: '', architecture: 'amd64' }), 'unknown');
});

t.test('platforms of an index are normalized, each once per spelling, without unknown ones', async (t) => {
  t.strictSame(
    platformsOf([
      { os: 'linux', architecture: 'amd64' },
      { os: 'linux', architecture: 'arm64', variant: 'v8' },
      { os: 'linux', architecture: 'arm64' },
      { os: 'linux', architecture: 'amd64', osVersion: '6.1' },
      { os: 'unknown', architecture: 'unknown' },
      { os: 'Linux', architecture: 'x86_64', variant: 'v1' },
      { os: 'linux', architecture: 'aarch64' },
      { os: 'linux', architecture: 'arm' },
      { os: 'linux', architecture: 'arm', variant: 'v6' },
      { os: 'windows', architecture: 'amd64', osVersion: '10.0.17763' },
      { os: 'windows', architecture: 'amd64', osVersion: '10.0.20348' },
      { os: 'windows', architecture: 'amd64', osVersion: '10.0.20348', needsFeatures: true },
      { os: '', architecture: 's390x', needsFeatures: true },
      { os: '', architecture: 's390x' },
      { os: 'linux', architecture: 'i386', variant: 'b\u0000' },
      { os: 'linux', architecture: '' },
      { os: 'linux', architecture: 'unknown' },
      { os: 'unknown', architecture: 'amd64' },
      { os: 'linux', architecture: 'am d64' },
      { os: 'lin\nux', architecture: 'amd64' },
      { os: 'linux', architecture: 'amd64', variant: 'v2\u001b[31m' },
      { os: 'linux', architecture: 'x'.repeat(64) },
    ]),
    [
      { os: 'linux', architecture: 'amd64' },
      { os: 'linux', architecture: 'arm64' },
      { os: 'linux', architecture: 'amd64', written: 'x86_64/v1' },
      { os: 'linux', architecture: 'arm64', written: 'aarch64' },
      { os: 'linux', architecture: 'arm', variant: 'v7', written: 'arm' },
      { os: 'linux', architecture: 'arm', variant: 'v6' },
      { os: 'windows', architecture: 'amd64', osVersion: '10.0.17763' },
      { os: 'windows', architecture: 'amd64', osVersion: '10.0.20348' },
      { os: 'linux', architecture: 's390x', needsFeatures: true },
      { os: 'linux', architecture: 's390x' },
      { os: 'linux', architecture: '386' },
    ],
  );
  t.strictSame(platformsOf([]), []);
});

const word = fc.oneof(
  fc.constantFrom('', ...'linux macOS amd64 x86_64 arm ARM64 armhf armel i386 v7 v8.0 9'.split(' ')),
  fc.string({ maxLength: 12 }),
);
const written = fc
  .record({ os: word, architecture: word, variant: fc.option(word, { nil: undefined }) })
  .map(({ variant, ...rest }) => (variant === undefined ? rest : { ...rest, variant }));

t.test('property: normalizing twice changes nothing', async (t) => {
  fc.assert(
    fc.property(written, (platform) => {
      const once = normalizePlatform(platform);
      t.matchOnly(normalizePlatform(once), once);
    }),
    { numRuns: 500 },
  );
});

t.test('property: platforms are unique, and each architecture is a valid label value', async () => {
  fc.assert(
    fc.property(fc.array(written, { maxLength: 8 }), (entries) => {
      const platforms = platformsOf(entries);
      const texts = platforms.map((platform) => JSON.stringify(platform));
      return (
        new Set(texts).size === texts.length &&
        platforms.every(({ architecture }) => isArchitecture(architecture)) &&
        platforms.every(({ written }) => written === undefined || isSpelling(written))
      );
    }),
    { numRuns: 500 },
  );
});
