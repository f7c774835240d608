import t from 'tap';
import { acceptedPlatforms } from '../../src/nodes/accepted-platforms.ts';
import { parsePlatform } from '../../scripts/vectors/upstream/platform-specifier.ts';
import { formatPlatform } from '../../src/names/platform.ts';

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
