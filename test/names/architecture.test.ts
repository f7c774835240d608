import { test } from 'tap';
import { unknownArchitecture } from '../../src/names/architecture.ts';

test('an unknown architecture has a suggestion', async (t) => {
  const rows: Readonly<Record<string, string>> = {
    amd46: 'amd64',
    AMD64: 'amd64',
    x86_64: 'amd64',
    aarch64: 'arm64',
    arm46: 'arm64',
    armhf: 'arm',
    s309x: 's390x',
    ppc64el: 'ppc64le',
  };
  for (const [name, meant] of Object.entries(rows))
    t.equal(unknownArchitecture(name), `unknown architecture ${name}; did you mean ${meant}?`);
  t.equal(unknownArchitecture('mainframe'), 'unknown architecture mainframe');
  t.match(unknownArchitecture('x'.repeat(1000)), /^unknown architecture x{60}\.\.\.$/u);
});

test('architectures of Go and of the cluster are known', async (t) => {
  for (const name of ['amd64', 'arm64', 'arm', '386', 'riscv64', 'loong64', 's390x', 'mips64le'])
    t.equal(unknownArchitecture(name), undefined, name);
  t.equal(unknownArchitecture('amd46', ['amd46']), undefined);
});
