import t from 'tap';
import { changeOf } from '../../../../src/controller/features/drift/check.ts';
import { platformOf } from '../../../support/registry/content.ts';
import type { FullPlatform } from '../../../../src/names/platform.ts';
import type { Amd64Level, NodeClass } from '../../../../src/nodes/node-class.ts';
import { like } from '../../../support/like.ts';

const platforms = (text: string): FullPlatform[] =>
  text.split(' ').map((each) => platformOf(each) as unknown as FullPlatform);
const manifest = 'application/vnd.oci.image.manifest.v1+json';

function amd64(amd64Level?: Amd64Level): NodeClass {
  const runtime = { name: 'containerd', version: '1.7.27' };
  return { os: 'linux', architecture: 'amd64', runtime, ...(amd64Level && { amd64Level }) };
}
const arm64: NodeClass = { os: 'linux', architecture: 'arm64', aarch32: true };

t.test('a lost platform counts if a node could run it and may not run the remaining ones', async (t) => {
  const single = 'linux/amd64/v3';
  const cases: [about: string, before: string, now: string, classes: NodeClass[], lost: string[]][] = [
    ['every CPU has the level', 'linux/amd64', single, [amd64(3), amd64(4)], []],
    ['a CPU lacks the level', 'linux/amd64', single, [amd64(3), amd64(2)], ['linux/amd64']],
    ['the level of a CPU is unknown', 'linux/amd64', single, [amd64()], ['linux/amd64']],
    ['no node of the architecture', 'linux/amd64 linux/arm64', 'linux/amd64', [amd64(2)], []],
    ['a 32-bit program beside one for the node', 'linux/arm64 linux/arm/v7', 'linux/arm64', [arm64], []],
    ['a 32-bit program that a node ran', 'linux/arm/v7', 'linux/amd64', [arm64], ['linux/arm/v7']],
  ];
  for (const [about, before, now, classes, lost] of cases) {
    const mediaType = now.includes(' ') ? undefined : manifest;
    const found = changeOf({
      before: platforms(before),
      isComplete: true,
      now: { platforms: platforms(now), ...(mediaType && { mediaType }) },
      classes,
    });
    t.strictSame(found?.lost ?? [], lost, about);
  }
});

t.test('a tag that became an artifact; an incomplete comparison', async (t) => {
  const before = platforms('linux/amd64');
  const classes = [amd64(1)];
  like(t, changeOf({ before, isComplete: true, now: { platforms: [] }, classes }), { lost: ['linux/amd64'] });
  const now = { platforms: platforms('linux/amd64 linux/arm64') };
  like(t, changeOf({ before, isComplete: true, now, classes }), { lost: [], gained: ['linux/arm64'] });
  t.equal(changeOf({ before, isComplete: false, now, classes }), undefined);
  const level = { platforms: platforms('linux/amd64/v3 linux/arm64') };
  const both = { before: platforms('linux/amd64 linux/arm64'), isComplete: true, classes: [amd64(1), arm64] };
  const variants = { lost: ['linux/amd64'], gained: ['linux/amd64/v3'] };
  like(t, changeOf({ ...both, now: level }), variants, 'a variant is part of the platform');
});
