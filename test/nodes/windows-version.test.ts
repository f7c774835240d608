import t from 'tap';
import { windowsVersionMatches } from '../../src/nodes/windows-version.ts';

t.test('a Windows host runs containers of compatible versions', async (t) => {
  const cases: [host: string, container: string, runs: boolean][] = [
    ['10.0.17763', '10.0.17763.5329', true],
    ['10.0.17763', '10.0.20348.1', false],
    ['10.0.20348', '10.0.17763.1', false],
    ['10.0.20348', '10.0.20348.1', true],
    ['10.0.20348', '10.0.25398.1', false],
    ['10.0.25398', '10.0.20348.1', true],
    ['10.0.26100', '10.0.20348.1', true],
    ['10.0.26100', '10.0.26100.1', true],
    ['10.0.26200', '10.0.17763.1', false],
    ['10.1.20348', '10.0.20348', false],
    ['10.0.20348', '', true],
    ['', '10.0.17763', true],
    ['10.0.20348', 'odd', false],
    ['odd', '10.0.17763', true],
    ['10.0', '10.0.17763', true],
    ['0.0.0', '10.0.17763', true],
    ['10.0.70000', '10.0.17763', true],
    ['300.0.1', '10.0.17763', true],
    ['10.0.17763', '', true],
    ['255.255.17763', '255.255.17764', false],
    ['10.0.65535', '10.1.1', false],
    ['10.0.17763', '10.0.18362', false],
    ['10.0.17763', '11.0.17763', false],
    ['10.0.17763', '10.1.17763', false],
    ['10.0.17763', 'odd', false],
    ['10.0.20348', '10.0.20347', false],
    ['10.0.22621', '10.0.20348', true],
    ['10.0.22621', '10.0.22622', false],
    ['10.0.26100', '10.0.20348', true],
    ['10.0.26101', '10.0.20348', true],
    ['10.0.26101', '10.0.26100', true],
  ];
  for (const [host, container, runs] of cases)
    t.equal(windowsVersionMatches(host, container), runs, `${container} on ${host}`);
});
