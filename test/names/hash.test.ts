import t from 'tap';
import { hashOf, hashText } from '../../src/names/hash.ts';

for (const hash of [hashOf, hashText]) {
  t.test(`${hash.name}: order and boundaries of texts count`, async (t) => {
    t.equal(hash(['a', 'b']), hash(['a', 'b']));
    t.not(hash(['a', 'b']), hash(['b', 'a']));
    t.not(hash(['ab']), hash(['a', 'b']));
    t.not(hash(['a', '']), hash(['a']));
  });
}
