import t from 'tap';
import { createGenerations } from '../../../src/images/memory/generations.ts';

t.test('what is used stays, what is not is forgotten after two generations', async (t) => {
  const cache = createGenerations<number>(2);
  cache.set('used', 1);
  for (let index = 0; index < 10; index += 1) {
    cache.set(`other ${index}`, index);
    t.equal(cache.get('used'), 1);
  }
  t.equal(cache.get('other 0'), undefined);
  t.equal(cache.get('other 9'), 9);
  cache.set('other 9', 10);
  t.equal(cache.get('other 9'), 10);
  t.equal(cache.get('never'), undefined);
});

t.test('setting what is there already forgets nothing', async (t) => {
  const cache = createGenerations<number>(2);
  cache.set('a', 1);
  cache.set('b', 1);
  for (let index = 0; index < 5; index += 1) cache.set('a', index);
  t.equal(cache.get('b'), 1);
});
