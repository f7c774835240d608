import * as fc from 'fast-check';
import t from 'tap';
import { systemClock } from '../../../src/async/clock.ts';
import { compileOverrides } from '../../../src/images/sources/overrides.ts';
import { registryProxy } from '../../../src/policy/value-kinds/addresses.ts';
import { imageOverride } from '../../../src/policy/value-kinds/architectures.ts';
import { createDefaultEndpoints } from '../../../src/registry/endpoints/endpoint.ts';
import { targetOf } from '../../support/registry/client.ts';

// A value that the configuration accepts must not fail in use, where it would fail for every pod.

t.test('property: every accepted pattern compiles', async (t) => {
  const unit = fc.constantFrom('a', 'b', '*', '**', '/', ':', '@', '.', '5', ' ', '[', '(');
  const sound = fc.stringMatching(/^[ab5]{1,2}(\/([ab5]|\*{1,2}){1,2}){0,2}(:[ab5*])?$/);
  let accepted = 0;
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit, maxLength: 14 }), sound), (match) => {
      const override = imageOverride.read({ match, architectures: [] }, () => undefined);
      if (!override) return;
      accepted++;
      compileOverrides([override], systemClock);
    }),
    { numRuns: 2000 },
  );
  t.ok(accepted > 100, `${accepted} were accepted`);
});

t.test('property: every accepted proxy gives an endpoint', async (t) => {
  const unit = fc.constantFrom('a', 'b', '=', '/', ':', '.', '5', '[', ']', '-', '@', 'http://');
  const sound = fc.stringMatching(/^(http:\/\/)?[ab5]{1,2}(\.[ab]{1,2})?(:5{1,3})?(\/[ab5-]{0,2}){0,2}$/);
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string({ unit, maxLength: 8 }), sound), async (text) => {
      const proxy = registryProxy.read(`docker.io=${text}`, () => undefined);
      if (!proxy) return;
      accepted++;
      const source = createDefaultEndpoints({ proxies: { [proxy.registry]: proxy.endpoint } });
      t.equal((await source.endpoints(targetOf('docker.io'))).length, 2, text);
    }),
    { numRuns: 1000 },
  );
  t.ok(accepted > 100, `${accepted} were accepted`);
});
