import t from 'tap';
import { windowsVersionMatches } from '../../../scripts/vectors/upstream/platform-windows.ts';

t.test('which Windows runs which container', (t) => {
  const cases: [host: string, container: string, runs: boolean][] = [
    ['', '10.0.17763', true],
    ['odd', '10.0.17763', true],
    ['10.0', '10.0.17763', true],
    ['0.0.0', '10.0.17763', true],
    ['10.0.70000', '10.0.17763', true],
    ['300.0.1', '10.0.17763', true],
    ['10.0.17763', '', true],
    ['10.0.17763', '10.0.17763.1', true],
    ['10.0.17763', '10.0.18362', false],
    ['10.0.17763', '11.0.17763', false],
    ['10.0.17763', '10.1.17763', false],
    ['10.0.17763', 'odd', false],
    ['10.0.20348', '10.0.20348', true],
    ['10.0.20348', '10.0.20347', false],
    ['10.0.22621', '10.0.20348', true],
    ['10.0.22621', '10.0.22622', false],
    ['10.0.26100', '10.0.20348', true],
    ['10.0.26101', '10.0.20348', false],
    ['10.0.26101', '10.0.26100', true],
  ];
  for (const [host, container, runs] of cases) {
    t.equal(windowsVersionMatches(host, container), runs, `${container} on ${host}`);
  }
  t.end();
});
