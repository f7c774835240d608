import { test } from 'tap';
import { publicFacts } from '../../../../src/placement/rules/images/unknown.ts';
import { like } from '../../../support/like.ts';
import { facts, failed } from '../../../support/placement-input.ts';

test('people see what a registry answered, and of other failures neither message nor endpoint', async (t) => {
  const byPlugin = { code: 'forbidden', message: 'plugin ecr: exit status 1', cause: 'plugin' } as const;
  for (const shown of [
    facts('amd64'),
    failed('unauthorized', 'registry.example said 401'),
    { ...failed('forbidden'), error: byPlugin },
  ])
    t.equal(publicFacts(shown), shown);
  const hidden = publicFacts(failed('timeout', '10.0.0.1 is silent'));
  like(t, hidden, { endpoint: '', error: { code: 'unavailable' } });
  t.notMatch(hidden.error?.message, '10.0.0.1');
});
