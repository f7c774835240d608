import * as fc from 'fast-check';
import { test } from 'tap';
import { decide } from '../../../src/placement/decide.ts';
import { skipReasons } from '../../../src/placement/decision.ts';
import { describeRule, rules } from '../../../src/placement/rules/rules.ts';
import { inputs } from '../../support/arbitrary-pods.ts';

test('each rule has a name in kebab-case and a description of one line', async (t) => {
  for (const [rule, description] of Object.entries(rules)) {
    t.match(rule, /^[a-z]+(?:-[a-z]+)*$/u);
    t.match(description, /^[^\n]{10,140}\.$/u);
    t.equal(describeRule(rule), description);
  }
  t.equal(describeRule('no-such-rule'), '');
  for (const skip of skipReasons) t.ok(describeRule(`skip-${skip}`), skip);
});

test('every decision has a reason, and only known rules', async (t) => {
  const known = new Set(Object.keys(rules));
  const property = fc.property(inputs(), (input) => {
    const { reasons } = decide(input);
    return reasons.length > 0 && reasons.every(({ rule, message }) => known.has(rule) && message.length > 0);
  });
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300 }));
});
